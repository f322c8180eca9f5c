#include "evaluate/control_tokens.h"

#include <algorithm>
#include <cstring>

#include "text/characters.h"

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
    if (byte >= byte_)
      character_ += count_characters(text_.substr(byte_, byte - byte_));
    else
      character_ -= count_characters(text_.substr(byte, byte_ - byte));
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
    if (token.size() > 1)
      seconds_[static_cast<uint8_t>(token[1])] = true;
    else
      has_short_ = true;
    uint32_t node = 0;
    for (const char byte : token) {
      const auto [found, is_new] = edges_.try_emplace(edge(node, byte), static_cast<uint32_t>(ends_.size()));
      if (is_new) ends_.push_back(End::None);
      node = found->second;
    }
    const bool is_exempt = std::find(exempt.begin(), exempt.end(), token) != exempt.end();
    ends_[node] = is_exempt ? End::Exempt : End::Token;
  }
  for (int byte = 0; byte < 256; byte++)
    if (begins_[byte]) firsts_ += static_cast<char>(byte);
}

namespace {

// Goes along the places at which a token may begin.
class FirstBytes {
 public:
  FirstBytes(std::string_view text, const std::string& firsts, const bool* begins)
      : text_(text), firsts_(firsts), begins_(begins), next_(firsts.size() <= kSearched ? firsts.size() : 0) {}

  // The first place from `at` on; `at` never goes back.
  size_t from(size_t at) {
    if (next_.empty()) {
      while (at < text_.size() && !begins_[static_cast<uint8_t>(text_[at])]) at++;
      return at;
    }
    size_t nearest = text_.size();
    for (size_t i = 0; i < next_.size(); i++) {
      if (next_[i] < at || !started_) {
        const void* const found = std::memchr(text_.data() + at, firsts_[i], text_.size() - at);
        next_[i] = found ? static_cast<size_t>(static_cast<const char*>(found) - text_.data()) : text_.size();
      }
      nearest = std::min(nearest, next_[i]);
    }
    started_ = true;
    return nearest;
  }

 private:
  static constexpr size_t kSearched = 4;  // as many bytes are searched for one by one

  const std::string_view text_;
  const std::string& firsts_;
  const bool* const begins_;
  std::vector<size_t> next_;  // of each byte, its next place
  bool started_ = false;
};

}  // namespace

std::vector<uint64_t> ControlTokens::guarded(const Rendering& rendering, std::string_view text) const {
  std::vector<uint64_t> offsets;
  if (edges_.empty()) return offsets;
  SpanCursor cursor(rendering, text);
  FirstBytes firsts(text, firsts_, begins_);
  for (size_t at = 0; (at = firsts.from(at)) < text.size(); at++) {
    if (at + 1 < text.size() && !seconds_[static_cast<uint8_t>(text[at + 1])] && !has_short_) continue;
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
