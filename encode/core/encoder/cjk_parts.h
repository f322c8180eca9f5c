// Chinese, Japanese and Korean under a model without a pre-tokenizer. Most parts between split points are one
// character, whose ids `LoneCharacters` has, or a few characters.
//
// Parts are handled in blocks: first all are found and their cache lines prefetched, then the cache misses are encoded
// together, then the ids are written.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/utf8.h"
#include "encoder/piece_caches.h"
#include "memory/id_buffer.h"
#include "models/model.h"

namespace tokenweir {

class CjkParts {
 public:
  CjkParts(const Model& model, bool guarded, PieceCaches& caches, ModelScratch& scratch, IdBuffer& ids)
      : model_(model),
        split_points_(*model.split_points()),
        guarded_(guarded),
        caches_(caches),
        scratch_(scratch),
        ids_(ids) {}

  // Whether a character with this first byte begins such a part: those from U+3000 on do.
  static bool begin_at(uint8_t lead) { return lead >= 0xE3; }

  // Appends the ids of the parts of [b, e), up to the first one that begins below U+3000; returns where that one
  // begins. `b` and `e` are split points.
  const uint8_t* encode(const uint8_t* b, const uint8_t* e, const uint8_t* text_end) {
    while (b < e && begin_at(*b)) {
      b = find(b, e, text_end);
      encode_missing();
      for (size_t i = 0; i < n_; i++) write(parts_[i]);
    }
    return b;
  }

 private:
  static constexpr size_t kBlock = kWordsAtOnce;

  struct Part {
    const uint8_t* p;
    size_t n;
    uint64_t lone;  // the entry of a single character
    WordKey key;    // of several characters
    uint32_t hash;
    uint32_t count;  // of `ids`; 0 after a cache miss that is not encoded yet
    int32_t ids[WordBatch::kMaxIds];

    bool is_lone() const { return LoneCharacters::count(lone) > 0; }
    bool is_short() const { return n <= WordKey::kMaxBytes; }
  };

  // A character and its entry in `LoneCharacters`.
  struct Character {
    uint32_t code;
    uint64_t entry;
  };

  Character take(const uint8_t*& p) const {
    uint32_t length;
    const uint32_t code = utf8_decode(p, length);
    p += length;
    return {code, split_points_.lone().find(code)};
  }

  // Finds a block of parts and prefetches their cache lines; returns where the next block begins.
  const uint8_t* find(const uint8_t* b, const uint8_t* e, const uint8_t* text_end) {
    const uint8_t* at = b;
    Character left = take(at);
    for (n_ = 0; n_ < kBlock && b < e && begin_at(*b);) {
      Part& part = parts_[n_++];
      part.p = b;
      part.lone = left.entry;
      for (b = e; at < e;) {
        const uint8_t* const place = at;
        const Character right = take(at);
        const bool cut = split_points_.may_cut(left.code, left.entry, right.code, right.entry);
        left = right;
        if (cut) {
          b = place;
          break;
        }
        part.lone = 0;
      }
      part.n = static_cast<size_t>(b - part.p);
      if (part.is_lone() || !part.is_short()) continue;
      part.key = WordKey::of(part.p, part.n, text_end - part.p >= 16);
      if (guarded_) part.key.high |= WordKey::kGuarded;
      part.hash = part.key.hash();
      caches_.words.prefetch(caches_.words.place(part.hash));
    }
    return b;
  }

  // Looks up the short parts, and encodes the cache misses together.
  void encode_missing() {
    Word words[kBlock];
    Part* missing[kBlock];
    size_t n = 0;
    for (size_t i = 0; i < n_; i++) {
      Part& part = parts_[i];
      part.count = 0;
      if (part.is_lone() || !part.is_short()) continue;
      part.count = static_cast<uint32_t>(caches_.words.find(part.key, part.hash, part.ids));
      if (part.count > 0) continue;
      words[n] = {part.p, static_cast<uint32_t>(part.n)};
      missing[n++] = &part;
    }
    if (n == 0 || guarded_ || !model_.encodes_words()) return;
    MergedWord merged[kBlock];
    model_.encode_words(words, n, merged);
    for (size_t i = 0; i < n; i++) {
      if (!merged[i].is_cacheable()) continue;
      Part& part = *missing[i];
      part.count = merged[i].count;
      std::copy(merged[i].ids, merged[i].ids + WordBatch::kMaxIds, part.ids);
      caches_.words.insert(part.key, part.hash, merged[i].ids, part.count);
    }
  }

  void write(const Part& part) {
    if (part.is_lone()) return ids_.advance(LoneCharacters::unpack(part.lone, ids_.room(LoneCharacters::kMaxIds)));
    if (part.count > 0) return ids_.append(part.ids, part.count);
    const bool keep = !part.is_short() && part.n <= model_.max_cached_bytes() && !guarded_;
    const uint64_t hash = keep ? LongPieceCache::hash(part.p, part.n) : 0;
    size_t count;
    if (keep)
      if (const int32_t* found = caches_.long_pieces.find(part.p, part.n, hash, count))
        return ids_.append(found, count);
    const size_t first = ids_.size();
    model_.encode(part.p, part.n, guarded_, scratch_, ids_, nullptr);
    count = ids_.size() - first;
    if (keep)
      caches_.long_pieces.insert(part.p, part.n, hash, ids_.data() + first, count);
    else if (part.is_short() && count > 0 && count <= WordCache::kMaxIds)
      caches_.words.insert(part.key, part.hash, ids_.data() + first, count);
  }

  const Model& model_;
  const SplitPoints& split_points_;
  const bool guarded_;
  PieceCaches& caches_;
  ModelScratch& scratch_;
  IdBuffer& ids_;
  Part parts_[kBlock];
  size_t n_ = 0;
};

}  // namespace tokenweir
