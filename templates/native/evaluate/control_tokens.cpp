#include "evaluate/control_tokens.h"

#include <algorithm>
#include <iterator>
#if defined(__SSSE3__)
#include <tmmintrin.h>
#endif

#include "text/characters.h"

namespace tokenweir::templates {

namespace {

// Goes along the spans of an output.
class SpanCursor {
 public:
  SpanCursor(const Rendering& rendering, std::string_view text) : rendering_(rendering), text_(text) {}

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

ControlTokens::Beginnings::Beginnings(const std::vector<std::string_view>& tokens) {
  // A byte that has another low half is in no place of a table.
  for (uint8_t half = 0; half < 16; half++) firsts_[0][half] = firsts_[1][half] = half ^ 1;
  for (const std::string_view token : tokens) {
    const auto first = static_cast<uint8_t>(token[0]), half = static_cast<uint8_t>(first & 15);
    if (!begins_[first]) {
      const bool is_taken = (firsts_[0][half] & 15) == half;
      are_few_ = are_few_ && !(is_taken && (firsts_[1][half] & 15) == half);
      firsts_[is_taken][half] = first;
    }
    begins_[first] = true;
    if (token.size() > 1)
      seconds_[static_cast<uint8_t>(token[1])] = true;
    else
      std::fill(std::begin(seconds_), std::end(seconds_), true);
  }
}

size_t ControlTokens::Beginnings::find(std::string_view text, size_t at) const {
#if defined(__SSSE3__)
  if (are_few_) {
    // The byte that a table has for the low half of a byte of the text is the byte itself, or another one.
    const __m128i one = _mm_loadu_si128(reinterpret_cast<const __m128i*>(firsts_[0]));
    const __m128i other = _mm_loadu_si128(reinterpret_cast<const __m128i*>(firsts_[1]));
    const __m128i half = _mm_set1_epi8(15);
    for (; at + 16 < text.size(); at += 16) {
      const __m128i chunk = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + at));
      const __m128i low = _mm_and_si128(chunk, half);
      const __m128i found = _mm_or_si128(_mm_cmpeq_epi8(chunk, _mm_shuffle_epi8(one, low)),
                                         _mm_cmpeq_epi8(chunk, _mm_shuffle_epi8(other, low)));
      for (auto places = static_cast<uint32_t>(_mm_movemask_epi8(found)); places; places &= places - 1) {
        const size_t place = at + static_cast<size_t>(__builtin_ctz(places));
        if (seconds_[static_cast<uint8_t>(text[place + 1])]) return place;
      }
    }
  }
#endif
  for (; at < text.size(); at++)
    if (begins_[static_cast<uint8_t>(text[at])] &&
        (at + 1 == text.size() || seconds_[static_cast<uint8_t>(text[at + 1])]))
      break;
  return at;
}

std::vector<uint64_t> ControlTokens::guarded(const Rendering& rendering, std::string_view text) const {
  std::vector<uint64_t> offsets;
  if (nodes_.size() == 1) return offsets;
  SpanCursor cursor(rendering, text);
  for (size_t at = 0; (at = beginnings_.find(text, at)) < text.size(); at++) {
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
