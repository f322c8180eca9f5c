// Cutting of text for models that take a whole document as one piece, with U+2581 for a space: Llama 2, Mistral, Gemma.
//
// The text is cut between two characters wherever no token contains both next to each other.
#include "common/characters.cuh"
#include "common/documents.cuh"
#include "cuts/split_point_table.h"

namespace tokenweir::characters {

// Filled by gpu/modes/characters.py.
struct CharacterTables {
  SplitPointTable split_points;
  uint64_t space;  // the character that a space stands for
};

}  // namespace tokenweir::characters

// Sets a bit in `pieces` where a piece or an added token begins. If spaces stand for U+2581, a document that has a
// U+2581 itself is refused, since the number of a token's bytes would then be ambiguous. One thread per word of the bit
// map.
extern "C" __global__ void cut_characters(const tokenweir::characters::CharacterTables* tables, const uint8_t* text,
                                          uint32_t n, const int64_t* offsets, uint32_t n_documents,
                                          const uint32_t* begins, const uint32_t* taken, uint32_t* pieces,
                                          uint32_t* refusals, uint32_t* counters) {
  using namespace tokenweir;
  using namespace tokenweir::characters;
  const uint32_t word = blockIdx.x * blockDim.x + threadIdx.x;
  if (word >= (n + 31) / 32) return;
  const Documents documents{offsets, n_documents, refusals, counters};
  const CharacterTables own = *tables;
  const uint32_t space = static_cast<uint32_t>(own.space);
  const uint32_t taken_here = taken[word];
  uint32_t found = edges(begins, taken, word), before = kNone;  // before: the previous character, or kNone if not known
  for (uint32_t bit = 0; bit < 32 && word * 32 + bit < n; bit++) {
    const uint32_t place = word * 32 + bit;
    if (taken_here >> bit & 1) {
      before = kNone;
      continue;
    }
    uint32_t c = text[place];
    if (c >= 0x80) {
      const uint32_t length = multibyte_at(text, place, c);
      if (length == kNotUtf8) documents.refuse(place, kInvalidUtf8);
      if (length == kWithin || length == kNotUtf8) continue;
      if (c == SplitPointTable::kSpace && space == c) documents.refuse(place, kSpaceSign);
    } else if (c == ' ') {
      c = space;
    }
    if (!(found >> bit & 1)) {
      if (before == kNone) {
        uint32_t at = place, length;
        do at--;
        while (at > 0 && utf8_continues(text[at]));
        before = utf8_decode(text + at, length);
        if (before == ' ') before = space;
      }
      if (own.split_points.may_cut(before, c)) found |= 1u << bit;
    }
    before = c;
  }
  pieces[word] = bits_within(found, word, n);
}
