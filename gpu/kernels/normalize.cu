// The normal form of texts by a character map, in the place of the texts themselves, for Unigram.
//
// What a character becomes takes the room of its own bytes, and what is left of them is gaps. Spaces stay spaces, where a
// model wants U+2581. So places stay where they are, and no thread needs to know how long anything before has become.
#include "common/characters.cuh"
#include "common/documents.cuh"
#include "common/normal.cuh"

namespace tokenweir::normal {

// Bits: what becomes of spaces.
enum Rule : uint32_t {
  kCollapses = 1,  // only the one before a word stays; text has a space before it, whether it is one or not
  kWords = 2,      // each begins what is encoded by itself
};

// gpu/modes/unigram.py fills it.
struct CharacterMap {
  const uint16_t* index;  // [0x1100]
  const uint32_t* pages;  // [page][256]: the bytes that a character becomes, the first the lowest, and then gaps; or kOdd

  __device__ uint32_t entry(uint32_t c) const { return pages[index[c >> 8] * 256u + (c & 0xFF)]; }
};

struct Source {
  const CharacterMap& map;
  const Documents& documents;
  const uint8_t* text;
  uint32_t n;
  const uint32_t *begins, *taken;
  uint32_t max_bytes;

  // What a character becomes that stays as it is.
  __device__ static uint32_t itself(uint32_t c) {
    return utf8_of(c) | (c < 0x80 ? 0xFFFFFF00u : c < 0x800 ? 0xFFFF0000u : c < 0x10000 ? 0xFF000000u : 0u);
  }

  // Whether the character that a byte is within is all there; if not, nobody else writes the byte.
  __device__ bool has_whole(uint32_t place) const {
    uint32_t c;
    do place--;
    while (utf8_continues(text[place]));
    return multibyte_at(text, n, place, c) != kNotUtf8;
  }

  // Whether a character of `length` bytes that may join the one before stays as it is.
  __device__ bool stays_beside(uint32_t place, uint32_t length) const {
    if (place == 0 || has_bit(begins, place) || has_bit(taken, place - 1)) return true;
    uint32_t at = place, own = 1;
    do at--;
    while (at > 0 && utf8_continues(text[at]));
    uint32_t c = text[at];
    if (c >= 0x80) own = multibyte_at(text, n, at, c);
    if (own == kWithin || own == kNotUtf8) return true;  // of a document that is refused
    const uint32_t entry = map.entry(c);
    return (length >= 3 && own >= 3) || entry == kJoins || entry == itself(c);
  }

  // Whether the next character that stays is part of a word.
  __device__ bool is_before_word(uint32_t at) const {
    uint32_t length;
    for (const uint32_t limit = at + max_bytes; at <= limit; at += length) {
      if (at >= n || has_bit(taken, at) || has_bit(begins, at)) return false;
      uint32_t c = text[at];
      length = 1;
      if (c >= 0x80) {
        length = multibyte_at(text, n, at, c);
        if (length == kWithin || length == kNotUtf8) return false;  // of a document that is refused
      }
      const uint32_t entry = map.entry(c);
      if (entry != kGaps) return entry != kSpaceOnly;
    }
    documents.refuse(at - 1, kTooLong);
    return false;
  }
};

}  // namespace tokenweir::normal

// begins: bits where documents begin; taken: of the bytes of added tokens; rules: bits of `Rule`. Writes the normal form to
// `out`, and sets bits in `pieces` where what is encoded by itself begins or an added token does. A document is refused for a
// character that becomes more than its bytes hold or may join with others, and for max_bytes of characters that are gone in
// one place. A thread a word.
extern "C" __global__ void normalize_texts(const tokenweir::normal::CharacterMap* characters, const uint8_t* text, uint32_t n,
                                           const int64_t* offsets, uint32_t n_documents, const uint32_t* begins,
                                           const uint32_t* taken, uint32_t rules, uint32_t max_bytes, uint8_t* out,
                                           uint32_t* pieces, uint32_t* refusals, uint32_t* counters) {
  using namespace tokenweir;
  using namespace tokenweir::normal;
  const uint32_t word = blockIdx.x * blockDim.x + threadIdx.x;
  if (word >= (n + 31) / 32) return;
  const Documents documents{offsets, n_documents, refusals, counters};
  const CharacterMap map = *characters;
  const Source source{map, documents, text, n, begins, taken, max_bytes};
  const uint32_t taken_here = taken[word];
  uint32_t found = edges(begins, taken, word);
  for (uint32_t bit = 0; bit < 32 && word * 32 + bit < n; bit++) {
    const uint32_t place = word * 32 + bit;
    if (taken_here >> bit & 1) {
      out[place] = kGap;
      continue;
    }
    uint32_t c = text[place], length = 1;
    if (c >= 0x80) {
      length = multibyte_at(text, n, place, c);
      if (length == kWithin && source.has_whole(place)) continue;
      if (length == kWithin || length == kNotUtf8) {
        documents.refuse(place, kInvalidUtf8);
        out[place] = kGap;
        continue;
      }
    }
    uint32_t entry = map.entry(c);
    if (entry == kJoins) entry = source.stays_beside(place, length) ? Source::itself(c) : kOdd;
    if (entry == kOdd) {
      documents.refuse(place, c == kSign ? kSpaceSign : kOddCharacter);
      entry = kGaps;
    }
    if (entry == kSpaceOnly) {
      if (rules & kWords) found |= 1u << bit;
      if (rules & kCollapses && !source.is_before_word(place + length)) entry = kGaps;
    }
    for (uint32_t i = 0; i < length; i++) out[place + i] = static_cast<uint8_t>(entry >> 8 * i);
  }
  pieces[word] = bits_within(found, word, n);
}
