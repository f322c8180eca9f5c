#include "control_tokens.h"

#include <algorithm>
#include <cstring>

#include "characters.h"

namespace tokenweir::templates {

namespace {

uint64_t edge(uint32_t node, char byte) { return uint64_t{node} << 8 | static_cast<uint8_t>(byte); }

// Goes along the spans of an output.
class SpanCursor {
 public:
  SpanCursor(const Rendering& rendering, std::string_view text) : rendering_(rendering), text_(text) {}

  // The first byte in [begin, end) that neither is vouched for nor, if `exempt`, an assistant's; npos if there is none.
  // `begin` never goes back.
  size_t first_unvouched(size_t begin, size_t end, bool exempt) {
    const std::vector<Span>& spans = rendering_.spans();
    while (at_ < spans.size() && start_ + spans[at_].size <= begin) start_ += spans[at_++].size;
    size_t start = start_;
    for (size_t i = at_; i < spans.size() && start < end; start += spans[i++].size) {
      const uint32_t origin = spans[i].origin;
      const Origins& origins = rendering_.origins();
      if (origins.vouched(origin) || (exempt && origin >= Origins::kFirst && origins.at(origin).answered)) continue;
      return std::max(begin, start);
    }
    return std::string_view::npos;
  }

  // The character that begins at a byte. Calls lie close to each other.
  uint64_t character_of(size_t byte) {
    if (byte >= byte_) character_ += count_characters(text_.substr(byte_, byte - byte_));
    else character_ -= count_characters(text_.substr(byte, byte_ - byte));
    byte_ = byte;
    return character_;
  }

 private:
  const Rendering& rendering_;
  const std::string_view text_;
  size_t at_ = 0, start_ = 0;  // a span, and its first byte
  size_t byte_ = 0;
  uint64_t character_ = 0;  // of `byte_`
};

}  // namespace

ControlTokens::ControlTokens(const std::vector<std::string>& tokens, const std::vector<std::string>& exempt) {
  for (const std::string& token : tokens) {
    if (token.empty()) continue;
    begins_[static_cast<uint8_t>(token[0])] = true;
    uint32_t node = 0;
    for (const char byte : token) {
      const auto [found, is_new] = edges_.try_emplace(edge(node, byte), static_cast<uint32_t>(ends_.size()));
      if (is_new) ends_.push_back(End::None);
      node = found->second;
    }
    const bool is_exempt = std::find(exempt.begin(), exempt.end(), token) != exempt.end();
    ends_[node] = is_exempt ? End::Exempt : End::Token;
  }
  const auto count = std::count(std::begin(begins_), std::end(begins_), true);
  if (count == 1) only_ = static_cast<int>(std::find(std::begin(begins_), std::end(begins_), true) - std::begin(begins_));
}

size_t ControlTokens::next(std::string_view text, size_t at) const {
  if (only_ >= 0) {
    const void* const found = std::memchr(text.data() + at, only_, text.size() - at);
    return found ? static_cast<size_t>(static_cast<const char*>(found) - text.data()) : text.size();
  }
  while (at < text.size() && !begins_[static_cast<uint8_t>(text[at])]) at++;
  return at;
}

std::vector<uint64_t> ControlTokens::guarded(const Rendering& rendering, std::string_view text) const {
  std::vector<uint64_t> offsets;
  if (edges_.empty()) return offsets;
  SpanCursor cursor(rendering, text);
  for (size_t at = 0; (at = next(text, at)) < text.size(); at++) {
    uint32_t node = 0;
    for (size_t end = at; end < text.size();) {
      const auto found = edges_.find(edge(node, text[end++]));
      if (found == edges_.end()) break;
      node = found->second;
      if (ends_[node] == End::None) continue;
      const size_t byte = cursor.first_unvouched(at, end, ends_[node] == End::Exempt);
      if (byte != std::string_view::npos) offsets.push_back(cursor.character_of(byte));
    }
  }
  std::sort(offsets.begin(), offsets.end());
  offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
  return offsets;
}

}  // namespace tokenweir::templates
