// The BPE tables of kernels, laid out for memory with sectors of 32 bytes. Freestanding.
//
// A look-up of a piece, or of a pair of ids, mostly reads one sector: a slot of the piece table holds the first 16
// bytes of a token and its id, a bucket of the pair table holds four pairs. Look-ups compare whole tokens and whole
// pairs, never only hashes. `DeviceBpe` implements the `rules` of the merge loop, which is the CPU's (merge_short.h).
// device_tables.h fills the tables.
#pragma once

#include "base/hash.h"
#include "models/character_tokens.h"

namespace tokenweir {

// A token in the piece table. Its first 16 bytes are two little-endian words, padded with zeros; the others begin at
// index `rest` of a separate array.
struct alignas(16) PieceSlot {
  uint64_t head[2];
  uint32_t id;  // kNone: the slot is empty
  uint32_t length;
  uint32_t rest;
  uint32_t only_whole;  // 1: merging the token's bytes does not yield it, so that parts of a piece are never this token
};

struct PieceTable {
  static constexpr uint32_t kHead = 16;

  const PieceSlot* slots;  // open addressing, linear
  const uint8_t* rest;
  uint64_t mask;  // of slot numbers

  // The index of the first slot to probe.
  TW_FN static uint64_t hash(uint64_t head, uint64_t second, uint32_t length, uint8_t last) {
    uint64_t h = mix(head ^ uint64_t{length} << 56 ^ uint64_t{last} << 48);
    h = mix(h ^ h >> 32 ^ second);
    return mix(h ^ h >> 32) >> 32;
  }

  // Returns the id of the piece p[0 .. n), n > 0, or of a part of one, given its head; or kNone.
  TW_FN uint32_t find(uint64_t head, uint64_t second, const uint8_t* p, uint32_t n, bool is_part) const {
    for (uint64_t i = hash(head, second, n, p[n - 1]) & mask;; i = (i + 1) & mask) {
      const PieceSlot slot = slots[i];
      if (slot.id == kNone) return kNone;
      if (slot.head[0] != head || slot.head[1] != second || slot.length != n) continue;
      uint32_t same = kHead;
      while (same < n && rest[slot.rest + same - kHead] == p[same]) same++;
      if (same >= n) return is_part && slot.only_whole ? kNone : slot.id;
    }
  }
};

// A slot: 20 bits each id, 24 bits priority; all ones if it is empty. Buckets fill from the front, and a full one
// overflows into the next.
struct alignas(16) PairBucket {
  static constexpr uint32_t kSlots = 4;
  static constexpr uint64_t kEmpty = ~uint64_t{0};

  uint64_t slots[kSlots];
};

// The ids of a character whose bytes are merged alone, in one word: 1 to 3 ids of 20 bits from the lowest on, and their
// number. Two ids leave room for the length of the first one's token, from which the host makes `lone_begins`.
struct LoneIds {
  static constexpr int kIdBits = 20;
  static constexpr int kOtherWholeBit = 62;  // set if a piece of this character has another id

  uint64_t word;

  TW_FN uint32_t count() const { return static_cast<uint32_t>(word >> 3 * kIdBits & 3); }
  TW_FN uint32_t id(uint32_t i) const { return static_cast<uint32_t>(word >> kIdBits * i & ((1u << kIdBits) - 1)); }
};

struct DeviceBpe {
  PieceTable pieces;
  const PairBucket* pairs;
  uint64_t pair_shift;         // shifts a pair's hash to a bucket index
  uint64_t pair_mask;          // of bucket indices
  const uint32_t* merged_ids;  // by entry; null if the id is the entry's index plus `merged_shift`
  uint64_t merged_shift;
  const uint32_t* ranks;        // by entry, then kNone: the first entry of equal priority; null if there are no ties
  const uint32_t* byte_ids;     // [256]; in a model over characters: of ASCII characters, and of the bytes of others
  const uint32_t* ascii_pairs;  // [128][128]
  CharacterTokens characters;
  uint64_t n_characters;       // the size of `characters`
  const uint64_t* lone;        // [CharacterTokens::kCharacters] of `LoneIds`, 0 where unknown; null if none is known
  const uint8_t* lone_begins;  // [CharacterTokens::kCharacters]: the bytes at which the tokens of `lone` begin, as bits
  const uint32_t* lengths;     // by id: the length of the token in bytes

  TW_FN uint32_t priority(uint32_t left, uint32_t right) const {
    const uint32_t found = entry(left, right);
    return ranks && found != kNone ? ranks[found] : found;
  }

  // Whether pairs that become different tokens have this priority.
  TW_FN bool is_tied(uint32_t priority) const { return ranks && ranks[priority + 1] == priority; }

  // Returns the table's entry for a pair, or kNone: the priority before ties are resolved.
  TW_FN uint32_t entry(uint32_t left, uint32_t right) const {
    const uint64_t key = pair_key(left, right);
    for (uint64_t i = mix(key) >> pair_shift;; i = (i + 1) & pair_mask) {
      const PairBucket bucket = pairs[i];
      for (uint32_t k = 0; k < PairBucket::kSlots; k++) {
        if (bucket.slots[k] >> 24 == key) return bucket.slots[k] & 0xFFFFFF;
        if (bucket.slots[k] == PairBucket::kEmpty) return kNone;
      }
    }
  }

  TW_FN uint32_t merged(uint32_t left, uint32_t right, uint32_t priority) const {
    const uint32_t found = is_tied(priority) ? entry(left, right) : priority;
    return merged_ids ? merged_ids[found] : found + static_cast<uint32_t>(merged_shift);
  }
  TW_FN uint32_t whole(const uint8_t* p, uint32_t i, uint32_t n) const {
    if (p[i] < 0xF0) return characters.token(p, i, n);
    uint32_t length;
    if (n_characters <= CharacterTokens::kCharacters || i + 4 > n) return kNone;
    const uint32_t c =
        utf8_decode_multibyte(p + i, length);  // safe beside any neighbour: only models over characters have it
    return c >= n_characters || characters.entries[c] == kNone ? kNone : characters.entries[c] & 0xFFFFFF;
  }
  static constexpr uint32_t kOtherWhole = 8;  // a bit of `lone_begins`: a piece of this character has another id

  // The bytes at which tokens begin in the piece p[0 .. n), n > 1, or in a part of one, as bits, if it is one character
  // whose ids are in `lone`; else none.
  TW_FN uint32_t begins_of_lone(const uint8_t* p, uint32_t n, bool is_part) const {
    if (!lone || p[0] < 0xC0 || n > 3 || utf8_length(p[0]) != n) return 0;
    uint32_t length;
    const uint32_t begins = lone_begins[utf8_decode_multibyte(p, length)];
    return begins < kOtherWhole ? begins : is_part ? begins - kOtherWhole : 0;
  }
  TW_FN uint32_t byte(uint8_t b) const { return byte_ids[b]; }
  TW_FN uint32_t ascii_pair(uint8_t a, uint8_t b) const { return ascii_pairs[a << 7 | b]; }
};

}  // namespace tokenweir
