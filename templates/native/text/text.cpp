#include "text/text.h"

#include <cstring>

#include "text/characters.h"

namespace tokenweir::templates {

void Workspace::exhausted() const {
  throw Failure(joined("the template takes more than the limit of ", max_steps, " steps for this input"));
}

void Workspace::too_large() const {
  throw Failure(joined("the template makes a text of more than the limit of ", max_text, " bytes"));
}

Text* Workspace::leaf(std::string_view bytes, uint32_t origin, uint32_t offset, int8_t ascii, bool changed) {
  Text* const text = static_cast<Text*>(arena.take(sizeof(Text)));
  text->bytes = bytes.data();
  text->size = static_cast<uint32_t>(bytes.size());
  text->children = 0;
  text->ascii = ascii;
  text->changed = changed;
  text->origin = origin;
  text->offset = offset;
  return text;
}

Text* Workspace::copy(std::string_view bytes, uint32_t origin, uint32_t offset, bool changed) {
  check_size(bytes.size());
  char* const memory = arena.array<char>(bytes.size() + 1);
  std::memcpy(memory, bytes.data(), bytes.size());
  return leaf({memory, bytes.size()}, origin, offset, -1, changed);
}

static int8_t both_ascii(int8_t a, int8_t b) { return a == 0 || b == 0 ? 0 : a < 0 || b < 0 ? -1 : 1; }

Text* Workspace::concat(Text* left, Text* right) {
  if (!left->size) return right;
  if (!right->size) return left;
  Rope rope(*this);
  rope.add(left);
  rope.add(right);
  return rope.finish();
}

Text* Rope::finish() {
  std::vector<Text*>& parts = workspace_.parts_;
  const size_t count = parts.size() - base_;
  if (count == 0) return workspace_.empty();
  if (count == 1) return parts.back();
  uint64_t size = 0;
  int8_t ascii = 1;
  Text** const children = workspace_.arena.array<Text*>(count);
  for (size_t i = 0; i < count; i++) {
    Text* const part = parts[base_ + i];
    children[i] = part;
    size += part->size;
    ascii = both_ascii(ascii, part->ascii);
  }
  workspace_.spend(count / 4);
  workspace_.check_size(size);
  Text* const text = static_cast<Text*>(workspace_.arena.take(sizeof(Text)));
  text->bytes = nullptr;
  text->size = static_cast<uint32_t>(size);
  text->children = static_cast<uint32_t>(count);
  text->ascii = ascii;
  text->changed = false;
  text->child = children;
  return text;
}

std::string_view Workspace::flatten(Text* text) {
  spend_bytes(text->size);
  char* const memory = arena.array<char>(text->size + 1);
  char* next = memory;
  const size_t base = stack_.size();
  stack_.push_back(text);
  while (stack_.size() > base) {
    Text* const top = stack_.back();
    stack_.pop_back();
    if (top->bytes) {
      std::memcpy(next, top->bytes, top->size);
      next += top->size;
      continue;
    }
    steps++;
    for (uint32_t i = top->children; i-- > 0;) stack_.push_back(top->child[i]);
  }
  text->bytes = memory;
  return {memory, text->size};
}

bool Workspace::ascii(Text* text) {
  if (text->ascii < 0) {
    spend_bytes(text->size);
    text->ascii = is_ascii(flat(text));
  }
  return text->ascii;
}

size_t Workspace::length(Text* text) {
  if (ascii(text)) return text->size;
  spend_bytes(text->size);
  return count_characters(flat(text));
}

size_t Workspace::byte_of(Text* text, size_t character) {
  if (ascii(text)) return std::min<size_t>(character, text->size);
  const size_t byte = byte_of_character(flat(text), character);
  spend_bytes(byte);
  return byte;
}

static Text* slice_leaf(Workspace& workspace, Text* leaf, size_t begin, size_t end) {
  if (begin == 0 && end == leaf->size) return leaf;
  const uint32_t offset = leaf->offset + (leaf->changed ? 0 : static_cast<uint32_t>(begin));
  const int8_t ascii = leaf->ascii == 1 ? 1 : -1;
  return workspace.leaf({leaf->bytes + begin, end - begin}, leaf->origin, offset, ascii, leaf->changed);
}

Text* Workspace::slice(Text* text, size_t begin, size_t end) {
  if (begin >= end) return empty();
  if (begin == 0 && end == text->size) return text;
  if (text->is_leaf()) return slice_leaf(*this, text, begin, end);
  return Slicer(*this, text)(begin, end);
}

Slicer::Slicer(Workspace& workspace, Text* text) : workspace_(workspace), text_(text) {
  if (text->is_leaf()) return;
  size_t at = 0;
  workspace.leaves(text, [&](Text* leaf) {
    starts_.emplace_back(at, leaf);
    at += leaf->size;
  });
  workspace.spend(starts_.size());
}

Text* Slicer::operator()(size_t begin, size_t end) {
  workspace_.spend(1);
  if (begin >= end) return workspace_.empty();
  if (begin == 0 && end == text_->size) return text_;
  if (text_->is_leaf()) return slice_leaf(workspace_, text_, begin, end);
  auto next = std::upper_bound(starts_.begin(), starts_.end(), begin,
                               [](size_t value, const auto& start) { return value < start.first; }) -
              1;
  Rope rope(workspace_);
  for (; next != starts_.end() && next->first < end; ++next) {
    const auto [start, leaf] = *next;
    rope.add(slice_leaf(workspace_, leaf, std::max(begin, start) - start, std::min<size_t>(end - start, leaf->size)));
  }
  Text* const text = rope.finish();
  if (text_->bytes && !text->is_leaf()) text->bytes = text_->bytes + begin;
  return text;
}

}  // namespace tokenweir::templates
