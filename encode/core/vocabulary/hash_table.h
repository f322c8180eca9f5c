// The two look-up tables of byte-pair encoding: token bytes -> id, and pair of ids -> priority of its merge.
//
// Both use open addressing with linear probing, and are only read after they are built. Their hashes have a random seed,
// which tables keep that outlive the process, so that no file can choose tokens or merges that collide.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>

#include "base/hash.h"
#include "memory/shared_array.h"
#include "vocabulary/token_list.h"

namespace tokenweir {

// The seed of all tables that this process builds. So it builds equal tables of equal files.
inline uint64_t process_seed() {
  static const uint64_t seed = [] {
    std::random_device device;
    return uint64_t{device()} << 32 | device();
  }();
  return seed;
}

// Multiplies by a constant and joins both halves of the product. So each bit of `x` changes all bits, in a way that
// depends on the other bits of `x`: inputs whose hashes are equal for one seed are not so for another.
inline uint64_t fold(uint64_t x) {
  __extension__ using Product = unsigned __int128;
  const Product product = Product{x} * 0x9E3779B97F4A7C15ull;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t hash_bytes(const uint8_t* p, size_t n, uint64_t seed) {
  const auto word = [](const uint8_t* at) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    return word;
  };
  const auto join = [](uint64_t h, uint64_t word) { return fold(h ^ word); };
  uint64_t h = seed + n, last = 0;
  if (n > 64) {  // in independent lanes, to hide the latency
    uint64_t lanes[4] = {h, seed + 1, seed + 2, seed + 3};
    for (; n > 32; p += 32, n -= 32)
      for (int i = 0; i < 4; i++) lanes[i] = join(lanes[i], word(p + 8 * i));
    h = join(join(lanes[0], lanes[1]), join(lanes[2], lanes[3]));
  }
  if (n >= 8) {
    last = word(p + n - 8);  // overlaps the words before, to avoid a loop over bytes
    for (; n > 8; p += 8, n -= 8) h = join(h, word(p));
  } else if (n >= 4) {
    uint32_t first, second;
    std::memcpy(&first, p, 4);
    std::memcpy(&second, p + n - 4, 4);
    last = uint64_t{first} << 32 | second;
  } else if (n > 0) {
    last = uint64_t{p[0]} << 16 | uint64_t{p[n / 2]} << 8 | p[n - 1];
  }
  return mix(join(h, last));
}

inline void prefetch(const void* p) {
#if defined(__GNUC__) || defined(__clang__)
  __builtin_prefetch(p);
  __asm__ volatile("");  // else GCC takes a function that only reads and prefetches for pure, and removes its calls
#else
  (void)p;
#endif
}

// The bits of a slot index, for at least `slots` slots.
inline int bits_of(size_t slots) {
  int bits = 4;
  while ((size_t{1} << bits) < slots) bits++;
  return bits;
}
// The bits of a slot index in a table that is at most half full.
inline int slot_bits(size_t entries) { return bits_of(entries * 2); }

// A Bloom filter with one hash function. It answers most misses from the CPU's cache, where a look-up in the table
// behind it, of several megabytes, would miss the cache.
class Filter {
 public:
  // `bits`: how many top bits of the hash select a bit.
  explicit Filter(int bits = 0) : shift_(64 - std::max(bits, 6)), words_(size_t{1} << (std::max(bits, 6) - 6), 0) {}

  void insert(uint64_t hash) { words_[hash >> shift_ >> 6] |= uint64_t{1} << (hash >> shift_ & 63); }
  void prefetch_bit(uint64_t hash) const { prefetch(&words_[hash >> shift_ >> 6]); }
  bool may_have(uint64_t hash) const { return words_[hash >> shift_ >> 6] >> (hash >> shift_ & 63) & 1; }

  const SharedArray<uint64_t>& words() const { return words_; }
  uint64_t shift() const { return static_cast<uint64_t>(shift_); }

  template <class Visit>
  void fields(Visit& visit) {
    visit(shift_, words_);
  }

 private:
  int shift_;
  SharedArray<uint64_t> words_;
};

// Token bytes to id. A slot has the id and half of the hash, so a look-up of a word that is not a token reads no token
// bytes.
class TokenTable {
 public:
  TokenTable() = default;
  explicit TokenTable(const TokenList& tokens)
      : tokens_(tokens),
        seed_(process_seed()),
        shift_(64 - slot_bits(tokens.size())),
        slots_(size_t{1} << (64 - shift_), Slot()),
        filter_(slot_bits(tokens.size()) + 2) {}

  // Inserts a token. The first of equal tokens wins; returns whether it is this one.
  bool insert(uint32_t id) {
    const std::string_view token = tokens_[id];
    const uint64_t h = hash(token);
    Slot& slot = slots_[slot_of(token, h)];
    if (slot.id != kNone) return false;
    slot = {static_cast<uint32_t>(h), id};
    filter_.insert(h);
    longest_ = std::max(longest_, token.size());
    return true;
  }

  uint32_t find(std::string_view token) const {
    if (token.size() > longest_) return kNone;
    const uint64_t h = hash(token);
    return filter_.may_have(h) ? slots_[slot_of(token, h)].id : kNone;
  }

  // `find` in three steps (search, prefetch_token, finish), for many tokens that are likely to be there. Each step
  // prefetches the memory that the next one reads.
  struct Search {
    std::string_view token;
    uint64_t hash;
  };

  Search search(std::string_view token) const {
    const uint64_t h = hash(token);
    prefetch(&slots_[h >> shift_]);
    return {token, h};
  }

  // Begins a search, unless the filter rejects the token; then returns false, and prefetches nothing.
  bool search(std::string_view token, Search& search) const {
    search = {token, hash(token)};
    if (!filter_.may_have(search.hash)) return false;
    prefetch(&slots_[search.hash >> shift_]);
    return true;
  }

  void prefetch_token(const Search& search) const {
    const Slot& slot = slots_[search.hash >> shift_];
    if (slot.id != kNone) prefetch(tokens_[slot.id].data());
  }

  uint32_t finish(const Search& search) const { return slots_[slot_of(search.token, search.hash)].id; }

  // The most slots between that of a token's hash and its own.
  size_t longest_probe() const {
    size_t longest = 0;
    for (size_t i = 0; i < slots_.size(); i++)
      if (slots_[i].id != kNone)
        longest = std::max(longest, (i - (hash(tokens_[slots_[i].id]) >> shift_)) & (slots_.size() - 1));
    return longest;
  }

  template <class Visit>
  void fields(Visit& visit) {
    visit(tokens_, seed_, shift_, longest_, slots_, filter_);
  }

 private:
  struct Slot {
    uint32_t tag = 0;
    uint32_t id = kNone;
  };

  uint64_t hash(std::string_view token) const {
    return hash_bytes(reinterpret_cast<const uint8_t*>(token.data()), token.size(), seed_);
  }

  // Returns the slot of `token`, or the empty slot where it would be.
  size_t slot_of(std::string_view token, uint64_t hash) const {
    for (size_t i = hash >> shift_;; i = (i + 1) & (slots_.size() - 1)) {
      const Slot& slot = slots_[i];
      if (slot.id == kNone || (slot.tag == static_cast<uint32_t>(hash) && tokens_[slot.id] == token)) return i;
    }
  }

  TokenList tokens_;
  uint64_t seed_ = 0;
  int shift_ = 0;
  size_t longest_ = 0;
  SharedArray<Slot> slots_;
  Filter filter_;
};

// Pair of ids to the priority of its merge (lower first), 8 bytes a slot: 20 bits each id, 24 bits priority.
//
// Most pairs that merging looks up do not merge; the filter, with at least 8 bits per pair, rejects most of these. So
// the table may be two thirds full: few look-ups probe to an empty slot, and halving the memory is worth more.
class PairTable {
 public:
  static constexpr uint32_t kMaxId = (1u << 20) - 2;
  static constexpr uint32_t kMaxPriority = (1u << 24) - 2;

  PairTable() = default;
  explicit PairTable(size_t capacity)
      : multiplier_(process_seed() | 1),
        shift_(64 - bits_of(capacity + capacity / 2)),
        slots_(size_t{1} << (64 - shift_), kEmpty),
        filter_(slot_bits(capacity) + 2) {}

  // Inserts a pair, or replaces its priority; returns whether the pair is new.
  bool insert(uint32_t left, uint32_t right, uint32_t priority) {
    const uint64_t key = pair_key(left, right), h = hash(key);
    filter_.insert(h);
    for (size_t i = h >> shift_;; i++) {
      uint64_t& slot = slots_[i & (slots_.size() - 1)];
      if (const bool is_new = slot == kEmpty; is_new || slot >> 24 == key) {
        slot = key << 24 | priority;
        return is_new;
      }
    }
  }

  // Prefetches the memory that `insert` writes.
  void prefetch_insert(uint32_t left, uint32_t right) const {
    prefetch(&slots_[hash(pair_key(left, right)) >> shift_]);
  }

  // Returns the priority of a pair, or kNone.
  uint32_t find(uint32_t left, uint32_t right) const {
    const uint64_t key = pair_key(left, right);
    return filter_.may_have(hash(key)) ? finish({key}) : kNone;
  }

  // `find` in three steps (search, prefetch_slot, finish), for several pairs. Each step prefetches the memory that the
  // next one reads.
  struct Search {
    uint64_t key;
  };

  // Begins a search. If `is_pair` is false, the search finds nothing and prefetches nothing.
  Search search(uint32_t left, uint32_t right, bool is_pair = true) const {
    const uint64_t key = pair_key(left, right) | (uint64_t{is_pair} - 1);
    filter_.prefetch_bit(hash(key));
    return {key};
  }

  void prefetch_slot(Search search) const { prefetch(&slots_[slot_of(hash(search.key))]); }

  // Prefetches the slot without waiting for the filter; the prefetch may be useless.
  void prefetch_slot_unfiltered(Search search) const { prefetch(&slots_[hash(search.key) >> shift_]); }

  // Returns the priority, or kNone. Reads two slots without a branch on their content, which would be mispredicted.
  uint32_t finish(Search search) const {
    const uint64_t h = hash(search.key), i = slot_of(h);
    const uint64_t first = slots_[i], second = slots_[(i + 1) & (slots_.size() - 1)];
    const uint32_t in_first = 0u - (first >> 24 == search.key), in_second = 0u - (second >> 24 == search.key);
    const uint32_t found = (first & in_first) | (second & in_second), nowhere = ~(in_first | in_second);
    const unsigned both_full = unsigned{first != kEmpty} & unsigned{second != kEmpty};
    if (__builtin_expect(nowhere & both_full & filter_.may_have(h), 0)) return probe_from(search.key, i + 1);
    return (found & 0xFFFFFF) | nowhere;
  }

  const SharedArray<uint64_t>& slots() const { return slots_; }

  // The most slots between that of a pair's hash and its own.
  size_t longest_probe() const {
    size_t longest = 0;
    for (size_t i = 0; i < slots_.size(); i++)
      if (slots_[i] != kEmpty)
        longest = std::max(longest, (i - (hash(slots_[i] >> 24) >> shift_)) & (slots_.size() - 1));
    return longest;
  }

  template <class Visit>
  void fields(Visit& visit) {
    visit(multiplier_, shift_, slots_, filter_);
  }

  // Calls `use(left, right, priority)` for every pair.
  template <class Use>
  void for_each(Use&& use) const {
    constexpr size_t kBlock = 16;
    for (const uint64_t* block = slots_.begin(); block < slots_.end(); block += kBlock) {
      uint64_t full[kBlock];
      size_t n = 0;
      for (size_t i = 0; i < kBlock; i++) {  // branch-free compaction
        full[n] = block[i];
        n += block[i] != kEmpty;
      }
      for (size_t i = 0; i < n; i++)
        use(static_cast<uint32_t>(full[i] >> 44), static_cast<uint32_t>(full[i] >> 24 & 0xFFFFF),
            static_cast<uint32_t>(full[i] & 0xFFFFFF));
    }
  }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};

  // Multiplication by a random odd number is a universal hash: whatever the pairs, few have the same top bits.
  uint64_t hash(uint64_t key) const { return key * multiplier_; }

  // Returns the first slot to probe for a hash; 0 if the filter rejects it.
  size_t slot_of(uint64_t h) const { return (h >> shift_) & (0 - uint64_t{filter_.may_have(h)}); }

  // Continues probing after the slot `i`.
  uint32_t probe_from(uint64_t key, size_t i) const {
    for (;;) {
      const uint64_t slot = slots_[++i & (slots_.size() - 1)];
      if (slot >> 24 == key) return slot & 0xFFFFFF;
      if (slot == kEmpty) return kNone;
    }
  }

  uint64_t multiplier_ = 1;
  int shift_ = 0;
  SharedArray<uint64_t> slots_;
  Filter filter_;
};

}  // namespace tokenweir
