// Pieces of up to 15 bytes and the ids they became: text repeats its words.
//
// One cache belongs to one thread at a time, so it needs no locks. An entry is 32 bytes, a set is two entries in one
// cache line; the older of the two is replaced. It grows while it fills, since a large empty table costs more in fresh
// pages than it saves on a short text.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

namespace tokenweir {

class WordCache {
 public:
  static constexpr size_t kMaxBytes = 15;
  static constexpr size_t kMaxIds = 4;

  // A piece of 1 to 15 bytes as two words, its length and whether it was `guarded` in the top byte.
  struct Key {
    uint64_t low, high;
    bool operator==(const Key& other) const { return low == other.low && high == other.high; }
  };

  struct Entry {
    Key key{0, 0};  // a length of zero: empty
    int32_t ids[kMaxIds];
  };

  // `readable`: at least 16 bytes may be read from `p`.
  static Key key(const uint8_t* p, size_t n, bool guarded, bool readable) {
    Key k{0, 0};
    if (readable) {
      std::memcpy(&k, p, 16);
      const uint64_t ones = ~uint64_t{0};
      if (n < 8) {
        k.low &= ~(ones << 8 * n);
        k.high = 0;
      } else {
        k.high &= ~(ones << 8 * (n - 8));
      }
    } else {
      std::memcpy(&k, p, n);
    }
    k.high |= uint64_t{n | (guarded ? 16u : 0u)} << 56;
    return k;
  }

  WordCache() : sets_(size_t{1} << kFirstBits) {}

  void prefetch(const Key& k) const { __builtin_prefetch(&sets_[index(k)]); }

  // The number of ids, written to `out` (which has room for kMaxIds); 0 if the piece is not there.
  size_t find(const Key& k, int32_t* out) const {
    const Set& set = sets_[index(k)];
    for (const Entry& entry : set.entries)
      if (entry.key == k) {
        std::memcpy(out, entry.ids, sizeof entry.ids);
        size_t n = 1;
        while (n < kMaxIds && entry.ids[n] >= 0) n++;
        return n;
      }
    return 0;
  }

  void insert(const Key& k, const int32_t* ids, size_t n) {
    if (++inserted_ > sets_.size() && sets_.size() < (size_t{1} << kLastBits)) grow();
    Set& set = sets_[index(k)];
    set.entries[1] = set.entries[0];
    set.entries[0].key = k;
    for (size_t i = 0; i < kMaxIds; i++) set.entries[0].ids[i] = i < n ? ids[i] : -1;
  }

 private:
  static constexpr int kFirstBits = 9, kLastBits = 17;  // 32 KiB to 8 MiB

  struct alignas(64) Set {
    Entry entries[2];
  };

  size_t index(const Key& k) const {
    uint64_t h = (k.low ^ k.high * 0xC2B2AE3D27D4EB4Full) * 0x9E3779B97F4A7C15ull;
    return (h ^ h >> 32) & (sets_.size() - 1);
  }

  void grow() {
    std::vector<Set> old(sets_.size() * 4);
    old.swap(sets_);
    for (const Set& set : old)
      for (int i = 1; i >= 0; i--)
        if (set.entries[i].key.high) {
          Set& to = sets_[index(set.entries[i].key)];
          to.entries[1] = to.entries[0];
          to.entries[0] = set.entries[i];
        }
  }

  std::vector<Set> sets_;
  size_t inserted_ = 0;
};

}  // namespace tokenweir
