#include "evaluate/control_tokens.h"

#include <algorithm>
#include <iterator>
#if defined(__SSSE3__)
#include <tmmintrin.h>
#endif

#include "base/common_prefix.h"
#include "text/characters.h"

namespace tokenweir::templates {

namespace {

// Goes along the spans of an output.
class SpanCursor {
 public:
  SpanCursor(const Rendering& rendering, std::string_view text) : rendering_(rendering), text_(text) {}

  // Goes to a byte at once.
  void skip_to(size_t byte) {
    const std::vector<Span>& spans = rendering_.spans();
    for (; at_ < spans.size() && start_ + spans[at_].size <= byte; start_ += spans[at_++].size)
      character_ += spans[at_].characters;
    byte_ = start_;
  }

  // The first byte in [begin, end) that neither is vouched for nor, if `exempt`, an assistant's; npos without such a byte.
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

// The bytes at the beginning that two outputs have in common, and of which the same are vouched for, or an assistant's.
size_t common_beginning(const Rendering& rendering, std::string_view text, const SearchedText& earlier) {
  const size_t common = common_prefix(text, earlier.text);
  struct Cursor {
    const Rendering& rendering;
    size_t next = 0, end = 0;  // the number of the next span, and the byte at which it begins
    bool vouched = false, answered = false;

    void step() {
      const Span& span = rendering.spans()[next++];
      const Origins& origins = rendering.origins();
      end += span.size;
      vouched = origins.vouched(span.origin);
      answered = span.origin >= Origins::kFirst && origins.at(span.origin).answered;
    }
  };
  Cursor here{rendering}, there{earlier.rendering};
  for (size_t at = 0; at < common; at = std::min(here.end, there.end)) {
    while (here.end <= at) here.step();
    while (there.end <= at) there.step();
    if (here.vouched != there.vouched || here.answered != there.answered) return at;
  }
  return common;
}

// The tokens that are not empty, each once, in the order of their bytes.
std::vector<std::string_view> sorted_tokens(const std::vector<std::string>& tokens) {
  std::vector<std::string_view> sorted(tokens.begin(), tokens.end());
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  if (!sorted.empty() && sorted[0].empty()) sorted.erase(sorted.begin());
  return sorted;
}

}  // namespace

ControlTokens::ControlTokens(const std::vector<std::string>& tokens, const std::vector<std::string>& exempt)
    : ControlTokens(sorted_tokens(tokens), exempt) {}

ControlTokens::ControlTokens(const std::vector<std::string_view>& sorted, const std::vector<std::string>& exempt)
    : beginnings_(sorted) {
  for (const std::string_view token : sorted) longest_ = std::max(longest_, token.size());
  struct Stretch {  // of the tokens that share the bytes up to a node
    size_t begin, end, shared;
  };
  std::vector<Stretch> stretches{{0, sorted.size(), 0}};  // of each node
  for (uint32_t node = 0; node < nodes_.size(); node++) {
    auto [begin, end, shared] = stretches[node];
    if (begin < end && sorted[begin].size() == shared) {
      const bool is_exempt = std::find(exempt.begin(), exempt.end(), sorted[begin]) != exempt.end();
      nodes_[node].end = is_exempt ? End::Exempt : End::Token;
      begin++;
    }
    nodes_[node].children = static_cast<uint32_t>(nodes_.size());
    while (begin < end) {
      const char byte = sorted[begin][shared];
      size_t next = begin + 1;
      while (next < end && sorted[next][shared] == byte) next++;
      nodes_.push_back({byte, End::None, 0, 0});
      stretches.push_back({begin, next, shared + 1});
      begin = next;
    }
    nodes_[node].count = static_cast<uint32_t>(nodes_.size()) - nodes_[node].children;
  }
}

ControlTokens::Bytes::Bytes() {
  // A byte that has another low half is in no place of a table.
  for (uint8_t half = 0; half < 16; half++) by_half[0][half] = by_half[1][half] = half ^ 1;
}

void ControlTokens::Bytes::add(uint8_t byte) {
  if (has[byte]) return;
  has[byte] = true;
  const uint8_t half = byte & 15;
  const bool is_taken = (by_half[0][half] & 15) == half;
  are_few = are_few && !(is_taken && (by_half[1][half] & 15) == half);
  by_half[is_taken][half] = byte;
}

ControlTokens::Beginnings::Beginnings(const std::vector<std::string_view>& tokens) {
  for (const std::string_view token : tokens)
    for (size_t i = 0; i < std::size(places_); i++) {
      if (i < token.size())
        places_[i].add(static_cast<uint8_t>(token[i]));
      else
        for (int byte = 0; byte < 256; byte++) places_[i].add(static_cast<uint8_t>(byte));
    }
}

bool ControlTokens::Beginnings::may_begin(std::string_view text, size_t at) const {
  for (size_t i = 0; i < std::size(places_) && at + i < text.size(); i++)
    if (!places_[i].has[static_cast<uint8_t>(text[at + i])]) return false;
  return true;
}

#if defined(__SSSE3__)
namespace {

// Finds bytes of a set: the one that a table has for the low half of a byte is the byte itself, or another one.
class ByteSearch {
 public:
  explicit ByteSearch(const uint8_t (&by_half)[2][16])
      : one_(_mm_loadu_si128(reinterpret_cast<const __m128i*>(by_half[0]))),
        other_(_mm_loadu_si128(reinterpret_cast<const __m128i*>(by_half[1]))) {}

  __m128i find(const char* bytes) const {
    const __m128i chunk = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
    const __m128i low = _mm_and_si128(chunk, _mm_set1_epi8(15));
    return _mm_or_si128(_mm_cmpeq_epi8(chunk, _mm_shuffle_epi8(one_, low)),
                        _mm_cmpeq_epi8(chunk, _mm_shuffle_epi8(other_, low)));
  }

 private:
  const __m128i one_, other_;
};

}  // namespace
#endif

size_t ControlTokens::Beginnings::find(std::string_view text, size_t at) const {
#if defined(__SSSE3__)
  if (places_[0].are_few) {
    const ByteSearch first(places_[0].by_half), second(places_[1].by_half);
    const __m128i any_second = _mm_set1_epi8(places_[1].are_few ? 0 : -1);
    for (; at + 32 < text.size(); at += 32) {
      const auto found = [&](const char* chunk) {
        const __m128i seconds = _mm_or_si128(second.find(chunk + 1), any_second);
        return static_cast<uint32_t>(_mm_movemask_epi8(_mm_and_si128(first.find(chunk), seconds)));
      };
      const char* const bytes = text.data() + at;
      for (uint32_t places = found(bytes) | found(bytes + 16) << 16; places; places &= places - 1) {
        const size_t place = at + static_cast<size_t>(__builtin_ctz(places));
        if (may_begin(text, place)) return place;
      }
    }
  }
#endif
  while (at < text.size() && !may_begin(text, at)) at++;
  return at;
}

std::vector<uint64_t> ControlTokens::guarded(const Rendering& rendering, std::string_view text,
                                             const SearchedText* earlier) const {
  std::vector<uint64_t> offsets;
  if (nodes_.size() == 1) return offsets;
  SpanCursor cursor(rendering, text);
  size_t begin = 0;
  if (earlier) {
    // An occurrence whose first such byte lies before `known` is within the common beginning. All others begin behind `begin`.
    const size_t common = common_beginning(rendering, text, *earlier);
    const size_t known = common > longest_ ? common - longest_ : 0;
    begin = known > longest_ ? known - longest_ : 0;
    cursor.skip_to(begin);
    const uint64_t character = cursor.character_of(known);
    offsets.assign(earlier->offsets.begin(),
                   std::lower_bound(earlier->offsets.begin(), earlier->offsets.end(), character));
  }
  for (size_t at = begin; (at = beginnings_.find(text, at)) < text.size(); at++) {
    if (cursor.first_unvouched(at, std::min(at + longest_, text.size()), false) == std::string_view::npos) continue;
    uint32_t node = 0;
    for (size_t end = at; end < text.size();) {
      const uint32_t children = nodes_[node].children, count = nodes_[node].count;
      uint32_t child = 0;
      while (child < count && nodes_[children + child].byte != text[end]) child++;
      if (child == count) break;
      node = children + child;
      end++;
      if (nodes_[node].end == End::None) continue;
      const size_t byte = cursor.first_unvouched(at, end, nodes_[node].end == End::Exempt);
      if (byte != std::string_view::npos) offsets.push_back(cursor.character_of(byte));
    }
  }
  std::sort(offsets.begin(), offsets.end());
  offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
  return offsets;
}

}  // namespace tokenweir::templates
