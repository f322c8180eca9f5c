// Cutting of oversized pieces of byte-level BPE where no merge crosses, since each would occupy one block for very
// long.
//
// A run of Chinese can be cut almost anywhere, a run of ASCII letters nowhere. Only places far from both ends of their
// piece are cut, so that short pieces stay whole: a vocabulary may have these as one token that merging would not make.
#include "common/characters.cuh"
#include "common/documents.cuh"
#include "cuts/byte_cut_table.h"

namespace tokenweir::oversized {

constexpr uint32_t kNearby = 1024;  // the least distance in bytes of a cut from both ends of its piece; no token is longer

// Whether no piece begins or ends near the bytes of a word of the bit map.
__device__ inline bool is_far_inside(const uint32_t* pieces, uint32_t word, uint32_t n_words) {
  constexpr uint32_t kWords = kNearby / 32;
  if (pieces[word] || word < kWords || word + kWords >= n_words) return false;
  for (uint32_t i = 1; i <= kWords; i++)
    if (pieces[word - i] | pieces[word + i]) return false;
  return true;
}

}  // namespace tokenweir::oversized

// out: bit map of `pieces` and of the cuts. One thread per word.
extern "C" __global__ void cut_oversized(const tokenweir::ByteCutTable* tables, const uint8_t* text, uint32_t n,
                                      const uint32_t* pieces, const uint32_t* taken, uint32_t* out) {
  using namespace tokenweir;
  const uint32_t word = blockIdx.x * blockDim.x + threadIdx.x, n_words = (n + 31) / 32;
  if (word >= n_words) return;
  uint32_t found = pieces[word];
  if (oversized::is_far_inside(pieces, word, n_words)) {
    const ByteCutTable pairs = *tables;
    for (uint32_t place = word * 32; place < word * 32 + 32; place++) {
      uint32_t c = text[place], before = place, length;
      if (utf8_continues(text[place]) || has_bit(taken, place)) continue;
      if (c >= 0x80 && multibyte_at(text, n, place, c) == kNotUtf8) continue;
      do before--;
      while (utf8_continues(text[before]));
      uint32_t last = text[before];
      if (last >= 0x80) {
        length = multibyte_at(text, n, before, last);
        if (length == kNotUtf8 || before + length != place) continue;
      }
      if (pairs.may_cut(last, c)) found |= 1u << place % 32;
    }
  }
  out[word] = found;
}
