#include "control_tokens.h"

#include <algorithm>
#include <cstring>

#include "characters.h"

namespace tokenweir::templates {

namespace {

constexpr uint32_t kOneByte = 1 << 16;

uint32_t key_of(std::string_view start) {
  const auto first = static_cast<uint8_t>(start[0]);
  return start.size() == 1 ? kOneByte | first : static_cast<uint32_t>(first << 8 | static_cast<uint8_t>(start[1]));
}

// Goes along the spans of an output.
class SpanCursor {
 public:
  SpanCursor(const Rendering& rendering, std::string_view text) : rendering_(rendering), text_(text) {}

  // The first byte in [begin, end) that neither is vouched for nor, if `exempt`, an assistant's; npos if there is none.
  // `begin` never goes back.
  size_t first_unvouched(size_t begin, size_t end, bool exempt) {
    const std::vector<Span>& spans = rendering_.spans();
    while (at_ < spans.size() && start_ + spans[at_].size <= begin) pass(spans[at_++]);
    size_t start = start_;
    for (size_t i = at_; i < spans.size() && start < end; start += spans[i++].size) {
      const uint32_t origin = spans[i].origin;
      const Origins& origins = rendering_.origins();
      if (origins.vouched(origin) || (exempt && origin >= Origins::kFirst && origins.at(origin).answered)) continue;
      return std::max(begin, start);
    }
    return std::string_view::npos;
  }

  // The character that the byte belongs to, which lies at or behind the last `begin`.
  uint64_t character_of(size_t byte) const {
    const std::vector<Span>& spans = rendering_.spans();
    size_t start = start_;
    uint64_t characters = characters_;
    for (size_t i = at_; i < spans.size() && start + spans[i].size <= byte; i++) {
      start += spans[i].size;
      characters += spans[i].characters;
    }
    return characters + count_characters(text_.substr(start, byte - start));
  }

 private:
  void pass(const Span& span) {
    start_ += span.size;
    characters_ += span.characters;
  }

  const Rendering& rendering_;
  const std::string_view text_;
  size_t at_ = 0, start_ = 0;
  uint64_t characters_ = 0;
};

}  // namespace

ControlTokens::ControlTokens(const std::vector<std::string>& tokens, const std::vector<std::string>& exempt) {
  for (const std::string& token : tokens) {
    if (token.empty()) continue;
    begins_[static_cast<uint8_t>(token[0])] = true;
    const bool is_exempt = std::find(exempt.begin(), exempt.end(), token) != exempt.end();
    by_start_[key_of(std::string_view(token).substr(0, 2))].push_back({token, is_exempt});
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
  if (by_start_.empty()) return offsets;
  SpanCursor cursor(rendering, text);
  for (size_t at = 0; (at = next(text, at)) < text.size(); at++) {
    for (const size_t start : {size_t{1}, size_t{2}}) {
      const auto found = by_start_.find(key_of(text.substr(at, start)));
      if (found == by_start_.end() || (start == 2 && at + 1 == text.size())) continue;
      for (const Token& token : found->second) {
        if (text.substr(at, token.text.size()) != token.text) continue;
        const size_t byte = cursor.first_unvouched(at, at + token.text.size(), token.exempt);
        if (byte != std::string_view::npos) offsets.push_back(cursor.character_of(byte));
      }
    }
  }
  std::sort(offsets.begin(), offsets.end());
  offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
  return offsets;
}

}  // namespace tokenweir::templates
