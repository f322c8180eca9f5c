// Character classes as the automaton's walks read them: one class byte for each byte of text.
//
// The class byte at a character's first byte has the class in 5 bits, the length in 2, and a flag where a section
// begins: a document, a piece of the previous stage, or the text after an added token. No walk crosses that. The other
// bytes of a character, the bytes of added tokens, and places outside the text have class 31.
//
// A class byte depends on 3 bytes around it, so any thread can compute it. Documents that are not UTF-8 are refused;
// their invalid bytes count as characters of class 0, so that every walk stays inside the text.
#pragma once

#include "common/characters.cuh"
#include "common/documents.cuh"
#include "gpu_tables/device_nfc.h"

namespace tokenweir {

constexpr uint8_t kClass = 0x1F, kNoClass = 0x1F, kBegins = 0x80;
constexpr uint32_t kLengthShift = 5;
constexpr uint8_t kInside = kNoClass;             // a continuation byte
constexpr uint8_t kOutside = kNoClass | kBegins;  // an added token, or outside the text

// The tables of one stage of the pre-tokenizer; filled by gpu/modes/tables.py.
struct CutTables {
  static constexpr uint32_t kMaxCells = 2048;
  static constexpr uint8_t kNotInert = 0x80;  // flag on a class: NFC may change a text with this character

  const uint16_t* transitions;  // [state][width], as in `Automaton`
  const uint32_t* entries;      // [0x110000]: the class in the lowest byte, and what `JoinTables` needs above it
  const uint8_t* ranks;         // [0x110000]: canonical combining classes (device_nfc.h)
  const uint64_t* pairs;        // sorted; pairs of characters that compose
  uint64_t n_pairs;
  const uint32_t* boundaries;  // bit b of word a: any walk ends between characters of the classes a and b
  uint64_t width, n_cells;

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
  const uint32_t* begins;  // bit map of the beginnings of documents, or of the previous stage's pieces
  const uint32_t* taken;   // bit map of the bytes of added tokens

  __device__ bool begins_at(uint32_t place) const {
    return has_bit(begins, place) || (place > 0 && has_bit(taken, place - 1));
  }

  // The class byte at any place, also outside the text.
  __device__ uint8_t class_at(int64_t at) const {
    if (at < 0 || at >= n) return kOutside;
    const uint32_t place = static_cast<uint32_t>(at);
    if (has_bit(taken, place)) return kOutside;
    const uint8_t begins_here = begins_at(place) ? kBegins : 0, byte = text[place];
    if (byte < 0x80) return tables.entries[byte] & kClass | begins_here;
    uint32_t c = 0;
    const uint32_t length = multibyte_at(text, place, c);
    if (length == kWithin) return kInside | begins_here;
    if (length == kNotUtf8) {
      documents.refuse(place, kInvalidUtf8);
      return begins_here;
    }
    const uint32_t entry = tables.entries[c];
    check_order(place, c, entry);
    return static_cast<uint8_t>(entry & kClass | (length - 1) << kLengthShift | begins_here);
  }

  // Refuses the document of a character of which NFC may change it, given its entry.
  __device__ void check_order(uint32_t place, uint32_t c, uint32_t entry) const {
    if (entry & CutTables::kNotInert && !ordered(place, c)) documents.refuse(place, kNotSurelyNfc);
  }

 private:
  // Whether NFC surely keeps a character: a mark that neither follows a mark of a higher class nor composes with the
  // starter right before it. False if this cannot be decided locally.
  __device__ bool ordered(uint32_t place, uint32_t c) const {
    const uint8_t rank = tables.ranks[c];
    if (rank == kOnlyHostKnows) return false;
    if (begins_at(place)) return true;
    uint32_t before = place, length;
    while (before > 0 && utf8_continues(text[--before])) {
    }
    if (before == place) return true;
    const uint32_t first = utf8_decode(text + before, length);
    const uint8_t first_rank = tables.ranks[first];
    if (rank == kMayCompose) return first_rank == 0 && !tables.composes(first, c);
    return first_rank == kComposed || first_rank <= rank;
  }
};

}  // namespace tokenweir
