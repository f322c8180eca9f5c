// The documents of a batch, which lie one after the other in one text, and the reasons why some are refused.
//
// Places in the text are 32-bit numbers, since a batch has less than 2 GiB. Bit maps have one bit per byte of text, in
// 32-bit words. The host encodes refused documents.
#pragma once

#include <stdint.h>

namespace tokenweir {

// The reasons, as bits; gpu/modes/exact.py has their texts.
enum Refusal : uint32_t {
  kInvalidUtf8 = 1,
  kNotSurelyNfc = 2,
  kTooLong = 4,                // a piece, or a text in which no boundary is sure
  kUnsupportedToken = 8,       // an added token that takes white space along, or wants no word beside it
  kUnsupportedCharacter = 16,  // normalizing expands this character, or may move it
  kSpaceSign = 32,             // a U+2581 where a space stands for it
  kGuardedPiece = 64,          // guarded text, which must not become some of the model's own pieces
};

// The words of a batch's counters.
enum Counter : uint32_t {
  kRefusals,
  kTinyPieces,
  kSmallPieces,
  kShortPieces,
  kMediumPieces,
  kLongPieces,
  kLeftPieces,
  kBlocksDone,
  kIds,
  kCounters
};

struct Documents {
  const int64_t* offsets;  // [n + 1]
  uint32_t n;
  uint32_t* refusals;  // bits of `Refusal`, by document
  uint32_t* counters;

  __device__ uint32_t begin(uint32_t document) const { return static_cast<uint32_t>(offsets[document]); }
  __device__ uint32_t end(uint32_t document) const { return static_cast<uint32_t>(offsets[document + 1]); }

  // The document of the byte at `place`: the last one that begins at or before it.
  __device__ uint32_t at(uint32_t place) const {
    uint32_t low = 0, high = n - 1;
    while (low < high) {
      const uint32_t middle = (low + high + 1) / 2;
      if (begin(middle) <= place)
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  }

  __device__ void refuse_document(uint32_t document, Refusal reason) const {
    if (__ldcv(&refusals[document]) & reason) return;  // saves atomics if many bytes are bad
    atomicOr(&refusals[document], static_cast<uint32_t>(reason));
    if (!__ldcv(&counters[kRefusals])) atomicOr(&counters[kRefusals], 1u);
  }

  __device__ void refuse(uint32_t place, Refusal reason) const { refuse_document(at(place), reason); }
};

__device__ inline bool has_bit(const uint32_t* bits, uint32_t place) { return bits[place >> 5] >> (place & 31) & 1; }

// A word of the bit map of places where a document begins, or a run of added tokens begins or ends.
__device__ inline uint32_t edges(const uint32_t* begins, const uint32_t* taken, uint32_t word) {
  const uint32_t before = word > 0 ? taken[word - 1] >> 31 : 0;
  return begins[word] | (taken[word] ^ (taken[word] << 1 | before));
}

// The bits of a word that stand for one of the text's `n` bytes.
__device__ inline uint32_t bits_within(uint32_t bits, uint32_t word, uint32_t n) {
  return n - word * 32 < 32 ? bits & ((1u << (n - word * 32)) - 1) : bits;
}

__device__ inline void set_bit(uint32_t* bits, uint32_t place) { atomicOr(&bits[place >> 5], 1u << (place & 31)); }

}  // namespace tokenweir
