// Normalization of texts in place by a character map, for Unigram.
//
// A character's replacement is written over its own bytes, and filled up with gap bytes. Spaces are kept, although the
// model has U+2581 for them. So no byte moves, and no thread needs to know the length of the normalized text before it.
#include "common/characters.cuh"
#include "common/documents.cuh"
#include "common/normal.cuh"

namespace tokenweir::normal {

// The treatment of spaces; bits.
enum Rule : uint32_t {
  kCollapses = 1,  // only the space before a word is kept, and the text counts as having one before it
  kWords = 2,      // each space begins a piece
};

// Filled by gpu/modes/unigram.py.
struct CharacterMap {
  const uint16_t* index;  // [0x1100]
  const uint32_t* pages;  // [page][256]: a replacement's bytes, the first in the low bits, then gaps; or kHostOnly

  __device__ uint32_t entry(uint32_t c) const { return pages[index[c >> 8] * 256u + (c & 0xFF)]; }
};

struct Source {
  const CharacterMap& map;
  const Documents& documents;
  const uint8_t* text;
  uint32_t n;
  const uint32_t *begins, *taken;
  uint32_t max_bytes;

  // The map's entry of a character that is kept.
  __device__ static uint32_t itself(uint32_t c) {
    return utf8_of(c) | (c < 0x80 ? 0xFFFFFF00u : c < 0x800 ? 0xFFFF0000u : c < 0x10000 ? 0xFF000000u : 0u);
  }

  // Whether the character around a continuation byte is complete; if not, no other thread writes the byte.
  __device__ bool has_whole(uint32_t place) const {
    uint32_t c;
    do place--;
    while (utf8_continues(text[place]));
    return multibyte_at(text, place, c) != kNotUtf8;
  }

  // Whether a character of `length` bytes that may compose with the previous one is treated as if it were alone.
  __device__ bool stays_beside(uint32_t place, uint32_t length) const {
    if (place == 0 || has_bit(begins, place) || has_bit(taken, place - 1)) return true;
    uint32_t at = place, own = 1;
    do at--;
    while (at > 0 && utf8_continues(text[at]));
    uint32_t c = text[at];
    if (c >= 0x80) own = multibyte_at(text, at, c);
    if (own == kWithin || own == kNotUtf8) return true;  // the document is refused
    const uint32_t entry = map.entry(c);
    return (length >= 3 && own >= 3) || entry == kJoins || entry == itself(c);
  }

  // Whether the next character that is kept is part of a word.
  __device__ bool is_before_word(uint32_t at) const {
    uint32_t length;
    for (const uint32_t limit = at + max_bytes; at <= limit; at += length) {
      if (at >= n || has_bit(taken, at) || has_bit(begins, at)) return false;
      uint32_t c = text[at];
      length = 1;
      if (c >= 0x80) {
        length = multibyte_at(text, at, c);
        if (length == kWithin || length == kNotUtf8) return false;  // the document is refused
      }
      const uint32_t entry = map.entry(c);
      if (entry != kGaps) return entry != kSpaceOnly && entry != kSpaceJoins;
    }
    documents.refuse(at - 1, kTooLong);
    return false;
  }
};

}  // namespace tokenweir::normal

// Writes the normal form to `out`, and sets bits in `pieces` where a piece or an added token begins. begins: bit map of
// the beginnings of documents. taken: bit map of the bytes of added tokens. rules: bits of `Rule`. A document is
// refused for a character whose replacement is longer than itself or which may compose with others, and for a run of
// removed characters of `max_bytes`. One thread per word of the bit maps.
extern "C" __global__ void normalize_texts(const tokenweir::normal::CharacterMap* characters, const uint8_t* text,
                                           uint32_t n, const int64_t* offsets, uint32_t n_documents,
                                           const uint32_t* begins, const uint32_t* taken, uint32_t rules,
                                           uint32_t max_bytes, uint8_t* out, uint32_t* pieces, uint32_t* refusals,
                                           uint32_t* counters) {
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
      length = multibyte_at(text, place, c);
      if (length == kWithin && source.has_whole(place)) continue;
      if (length == kWithin || length == kNotUtf8) {
        documents.refuse(place, kInvalidUtf8);
        out[place] = kGap;
        continue;
      }
    }
    uint32_t entry = map.entry(c);
    if (entry == kJoins || entry == kSpaceJoins) {
      const uint32_t alone = entry == kJoins ? Source::itself(c) : kSpaceOnly;
      entry = source.stays_beside(place, length) ? alone : kHostOnly;
    }
    if (entry == kHostOnly) {
      documents.refuse(place, c == kSign ? kSpaceSign : kUnsupportedCharacter);
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
