#include <algorithm>
#include <array>
#include <cmath>

#include "text/characters.h"
#include "values/bigint.h"
#include "values/json.h"
#include "values/json_chunk.h"
#include "values/text_edit.h"

namespace tokenweir::templates {
namespace {

// The letters of short escapes, by the bytes that they stand for.
constexpr auto kLetters = [] {
  std::array<char, 256> table{};
  constexpr std::string_view kBytes = "\"\\\n\r\t\b\f", kTheirs = "\"\\nrtbf";
  for (size_t i = 0; i < kBytes.size(); i++) table[static_cast<uint8_t>(kBytes[i])] = kTheirs[i];
  return table;
}();

class Writer {
 public:
  Writer(Workspace& workspace, const JsonStyle& style) : workspace_(workspace), style_(style), rope_(workspace) {}

  Text* write(const Value& value) {
    add(value, 0);
    return rope_.finish();
  }

 private:
  void add(const Value& value, int level) {
    workspace_.spend(1);
    switch (value.kind) {
      case Kind::Text: add_string(value.text); return;
      case Kind::List:
      case Kind::Tuple: add_list(*value.list, level); return;
      case Kind::Dict: add_dict(*value.dict, level); return;
      default:
        if (Text* const scalar = scalar_text(value)) {
          rope_.add(scalar);
          return;
        }
        type_error("Object of type ", type_name(value), " is not JSON serializable");
    }
  }

  Text* scalar_text(const Value& value) {
    switch (value.kind) {
      case Kind::None: return workspace_.leaf("null", value.origin, 0, 1, true);
      case Kind::Bool: return workspace_.leaf(value.integer ? "true" : "false", value.origin, 0, 1, true);
      case Kind::Int:
      case Kind::BigInt: return number_text(workspace_, value);
      case Kind::Float:
        if (std::isnan(value.number)) return workspace_.leaf("NaN", value.origin, 0, 1, true);
        if (std::isinf(value.number))
          return workspace_.leaf(value.number < 0 ? "-Infinity" : "Infinity", value.origin, 0, 1, true);
        return number_text(workspace_, value);
      default: return nullptr;
    }
  }

  void add_list(const List& list, int level) {
    if (!list.size) return rope_.add("[]");
    Depth depth(workspace_);
    rope_.add("[");
    for (const Value& item : list) {
      if (&item != list.begin()) rope_.add(style_.between_items);
      break_line(level + 1);
      add(item, level + 1);
    }
    break_line(level);
    rope_.add("]");
  }

  void add_dict(const Dict& dict, int level) {
    if (!dict.size) return rope_.add("{}");
    Depth depth(workspace_);
    std::vector<const Entry*> entries;
    for (const Entry& entry : dict) entries.push_back(&entry);
    if (style_.sorted) {
      workspace_.spend(dict.size);
      std::stable_sort(entries.begin(), entries.end(),
                       [&](const Entry* a, const Entry* b) { return compare(workspace_, a->key, b->key) == -1; });
    }
    rope_.add("{");
    for (size_t i = 0; i < entries.size(); i++) {
      if (i) rope_.add(style_.between_items);
      break_line(level + 1);
      add_key(entries[i]->key);
      rope_.add(style_.after_key);
      add(entries[i]->value, level + 1);
    }
    break_line(level);
    rope_.add("}");
  }

  void add_key(const Value& key) {
    if (key.is_text()) return add_string(key.text);
    Text* const scalar = scalar_text(key);
    if (!scalar) type_error("keys must be str, int, float, bool or None, not ", type_name(key));
    rope_.add("\"");
    rope_.add(scalar);
    rope_.add("\"");
  }

  void break_line(int level) {
    if (!style_.indent) return;
    const auto at = static_cast<size_t>(level);
    while (indents_.size() <= at)
      indents_.push_back(repeat(workspace_, style_.indent, static_cast<int64_t>(indents_.size())));
    workspace_.spend(1 + at / 4);
    rope_.add("\n");
    rope_.add(indents_[at]);
    workspace_.check_size(indented_ += indents_[at]->size);
  }

  void add_string(Text* text) {
    rope_.add("\"");
    workspace_.leaves(text, [&](Text* leaf) { rope_.add(escaped(leaf)); });
    rope_.add("\"");
  }

  // Bytes whose escapes are found together, since each turn of a loop over them may be a branch that is mispredicted.
  static constexpr size_t kChunks = Chunk::kSize == 16 ? 4 : 1, kBlock = kChunks * Chunk::kSize;

  static void copy_block(const char* from, char* to) {
    for (size_t i = 0; i < kChunks; i++) Chunk(from + i * Chunk::kSize).store(to + i * Chunk::kSize);
  }

  Text* escaped(Text* leaf) {
    const size_t size = leaf->size;
    const size_t count = count_escaped(leaf->bytes, size);
    workspace_.spend_bytes(size);
    if (!count) return leaf;
    const size_t room = size + 5 * count;
    workspace_.spend_bytes(room);
    char* const memory = workspace_.arena.array<char>(room + kBlock);
    char* out = memory;
    for (size_t at = 0; at < size;) {
      uint64_t found = 0;
      while (!found && at + 2 * kBlock <= size) {  // so that a block can be copied from each of its bytes on
        const char* const block = leaf->bytes + at;
        for (size_t i = 0; i < kChunks; i++) found |= escaped(Chunk(block + i * Chunk::kSize)) << i * Chunk::kSize;
        size_t done = 0;  // bytes of the block
        for (; found; found &= found - 1) {
          const size_t plain = Chunk::index(found) - done;
          copy_block(block + done, out);
          done += plain;
          out += plain;
          const char letter = kLetters[static_cast<uint8_t>(block[done])];
          if (!letter) break;
          *out++ = '\\';
          *out++ = letter;
          done++;
        }
        if (!found) {
          copy_block(block + done, out);
          out += kBlock - done;
          done = kBlock;
        }
        at += done;
      }
      while (at < size && !is_escaped(leaf->bytes[at])) *out++ = leaf->bytes[at++];
      if (at < size) out = escape(bytes_of({leaf->bytes, size}), at, out);
    }
    const int8_t ascii = style_.ascii ? 1 : leaf->ascii;
    return workspace_.leaf({memory, static_cast<size_t>(out - memory)}, leaf->origin, leaf->offset, ascii, true);
  }

  size_t count_escaped(const char* bytes, size_t size) const {
    size_t count = 0, at = 0;
    for (; at + Chunk::kSize <= size; at += Chunk::kSize)
      count += static_cast<size_t>(__builtin_popcountll(escaped(Chunk(bytes + at))));
    for (; at < size; at++) count += is_escaped(bytes[at]);
    return count;
  }

  uint64_t escaped(const Chunk& chunk) const { return style_.ascii ? chunk.special_or_other() : chunk.special(); }
  bool is_escaped(char c) const {
    const auto byte = static_cast<uint8_t>(c);
    return byte < 0x20 || byte == '"' || byte == '\\' || (style_.ascii && byte >= 0x7F);
  }

  // Writes the character at `at`, which is moved behind it.
  static char* escape(const uint8_t* bytes, size_t& at, char* out) {
    if (const char letter = kLetters[bytes[at]]) {
      *out++ = '\\';
      *out++ = letter;
      at++;
      return out;
    }
    uint32_t length;
    uint32_t c = utf8_decode(bytes + at, length);
    at += length;
    if (c > 0xFFFF) {
      c -= 0x10000;
      out = unit(0xD800 + (c >> 10), out);
      c = 0xDC00 + (c & 0x3FF);
    }
    return unit(c, out);
  }

  static char* unit(uint32_t c, char* out) {
    constexpr char kDigits[] = "0123456789abcdef";
    *out++ = '\\';
    *out++ = 'u';
    for (int shift = 12; shift >= 0; shift -= 4) *out++ = kDigits[c >> shift & 15];
    return out;
  }

  Workspace& workspace_;
  const JsonStyle& style_;
  Rope rope_;
  std::vector<Text*> indents_;  // of each level
  size_t indented_ = 0;         // bytes of indentation
};

}  // namespace

Text* to_json(Workspace& workspace, const Value& value, const JsonStyle& style) {
  return Writer(workspace, style).write(value);
}

}  // namespace tokenweir::templates
