// The classes of characters, as a walk of the automaton reads them: a byte for each byte of text.
//
// A character's first byte has its class in 5 bits, its length in 2 and, in the last, whether a stretch begins there
// that is cut by itself: a document, a piece of the stage before, or what follows an added token. Nothing is read across
// that. The other bytes of a character, those of added tokens, and what is before and after the text have class 31.
//
// What a byte is depends on 3 bytes around it, so any thread can find it. Bytes that are no UTF-8 are refused with their
// document; until then each is a character of class 0, so that every walk stays inside the text.
#pragma once

#include "common/characters.cuh"
#include "common/documents.cuh"
#include "gpu_tables/device_nfc.h"

namespace tokenweir {

constexpr uint8_t kClass = 0x1F, kNoClass = 0x1F, kBegins = 0x80;
constexpr uint32_t kLengthShift = 5;
constexpr uint8_t kInside = kNoClass;           // a character
constexpr uint8_t kOutside = kNoClass | kBegins;  // of all text that is cut

// One stage of the pre-tokenizer; gpu/modes/tables.py fills it.
struct CutTables {
  static constexpr uint32_t kMaxCells = 2048;
  static constexpr uint8_t kNotInert = 0x80;  // beside a class: form C may change a text with this character

  const uint16_t* transitions;  // [state][width], as in `Automaton`
  const uint16_t* class_index;  // [0x1100]
  const uint8_t* class_pages;   // [page][256]
  const uint16_t* rank_index;   // of canonical combining classes (device_nfc.h), likewise
  const uint8_t* rank_pages;
  const uint64_t* pairs;        // sorted: two characters that become one
  uint64_t n_pairs;
  const uint32_t* boundaries;  // bit b of word a: a walk ends between two characters of these classes
  const uint32_t* sync;        // ... and a piece begins
  uint64_t width, n_cells;

  __device__ uint8_t entry(uint32_t c) const { return class_pages[class_index[c >> 8] * 256u + (c & 0xFF)]; }
  __device__ uint8_t rank(uint32_t c) const { return rank_pages[rank_index[c >> 8] * 256u + (c & 0xFF)]; }

  __device__ bool composes(uint32_t first, uint32_t second) const {
    const uint64_t pair = uint64_t{first} << 32 | second;
    uint64_t low = 0, high = n_pairs;
    while (low < high) {
      const uint64_t middle = (low + high) / 2;
      if (pairs[middle] < pair)
        low = middle + 1;
      else
        high = middle;
    }
    return low < n_pairs && pairs[low] == pair;
  }
};

struct CutText {
  const CutTables& tables;
  const Documents& documents;
  const uint8_t* text;
  uint32_t n;
  const uint32_t* begins;  // where documents begin, or pieces of the stage before
  const uint32_t* taken;   // bytes of added tokens

  __device__ bool begins_at(uint32_t place) const {
    return has_bit(begins, place) || (place > 0 && has_bit(taken, place - 1));
  }

  // The class byte at a place, which may lie outside the text.
  __device__ uint8_t class_at(int64_t at) const {
    if (at < 0 || at >= n) return kOutside;
    const uint32_t place = static_cast<uint32_t>(at);
    if (has_bit(taken, place)) return kOutside;
    const uint8_t begins_here = begins_at(place) ? kBegins : 0, byte = text[place];
    if (byte < 0x80) return tables.entry(byte) & kClass | begins_here;
    return class_of_multibyte(place) | begins_here;
  }

  // Of a byte that is not ASCII; without `kBegins`.
  __device__ uint8_t class_of_multibyte(uint32_t place) const {
    uint32_t c;
    const uint32_t length = multibyte_at(text, n, place, c);
    if (length == kNotUtf8) return refused(place, kInvalidUtf8);
    if (length == kWithin) return kInside;
    const uint8_t entry = tables.entry(c);
    if (entry & CutTables::kNotInert && !ordered(place, c)) documents.refuse(place, kNotSurelyNfc);
    return static_cast<uint8_t>(entry & kClass | (length - 1) << kLengthShift);
  }

 private:
  __device__ uint8_t refused(uint32_t place, Refusal reason) const {
    documents.refuse(place, reason);
    return 0;
  }

  // Whether form C leaves a character where it stands: a mark after no mark of a higher class, or one that becomes no
  // character with the starter right before it; false for what takes more than that to know.
  __device__ bool ordered(uint32_t place, uint32_t c) const {
    const uint8_t rank = tables.rank(c);
    if (rank == kOnlyHostKnows) return false;
    if (begins_at(place)) return true;
    uint32_t before = place, length;
    while (before > 0 && utf8_continues(text[--before])) {
    }
    if (before == place) return true;
    const uint32_t first = utf8_decode(text + before, length);
    const uint8_t first_rank = tables.rank(first);
    if (rank == kMayCompose) return first_rank == 0 && !tables.composes(first, c);
    return first_rank == kComposed || first_rank <= rank;
  }
};

}  // namespace tokenweir
