// Pieces of byte-level BPE that begin beyond ASCII, encoded part by part between their cuts (cuts/byte_cuts.h). Most
// parts of a run of Chinese are one character, whose ids are precomputed.
//
// Parts are handled in blocks, and a block has the parts of many pieces: each step of a block prefetches what the next
// one reads, so that the cache misses of all its parts overlap. The loops have no branches that text decides: where a
// part ends, and whether it is one character, is as good as random.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/utf8.h"
#include "encoder/piece_caches.h"
#include "memory/id_buffer.h"
#include "models/model.h"
#include "vocabulary/word_table.h"

namespace tokenweir {

// Whether merging the bytes of `token` yields this token; `token` is an entry of `words` with its flags. If that is not
// known yet, the model is asked, and the table records the answer.
inline bool is_mergeable(const Model& model, const WordTable& words, uint32_t token, const WordKey& key) {
  if (token & WordTable::kMergeable) return true;
  if (token & WordTable::kUnmergeable) return false;
  const bool mergeable = model.merges_to(token & WordTable::kId);
  words.record_merge(key, mergeable);
  return mergeable;
}

class ByteCutParts {
 public:
  // `cuts` and `words` are the model's tables; null if pieces are not cut, as in guarded text. Ids are appended to
  // `ids`.
  ByteCutParts(const Model& model, const ByteCuts* cuts, const WordTable* words, PieceCaches& caches,
               ModelScratch& scratch, IdBuffer& ids)
      : model_(model),
        cuts_(cuts),
        words_(words),
        characters_(model.characters()),
        ignore_merges_(model.ignores_merges()),
        caches_(caches),
        scratch_(scratch),
        ids_(ids) {}

  // Whether cutting pays: the piece begins with a character beyond ASCII, or with a space and one. Some pre-tokenizers
  // begin or end pieces inside a character; those are never cut.
  bool may_cut(const uint8_t* p, size_t n) const {
    if (!cuts_ || n < 4 || (p[0] | p[1]) < 0x80 || utf8_continues(p[0])) return false;
    const uint8_t *end = p + n, *last = end - 1;
    while (last > p && utf8_continues(*last)) last--;
    return last + utf8_length(*last) == end;
  }

  // Adds a piece that `may_cut` accepts. `found` receives its ids, at the latest by `flush`. `readable`: 16 bytes may be
  // read from each byte of the piece.
  void add(const uint8_t* p, size_t bytes, bool readable, IdRange& found) {
    constexpr size_t kUsualBytes = 3;  // of a character
    if (n_ + bytes / kUsualBytes >= kParts || readable != readable_) flush();
    readable_ = readable;
    const ByteCutTable cuts = cuts_->view();
    const uint8_t *at = p, *const end = p + bytes;
    uint32_t length, before = utf8_decode(at, length);
    starts_[n_] = at;
    lone_ids_[n_] = characters_->lone(before);
    bool is_cut = false;
    for (at += length; at < end;) {
      if (n_ + 1 == kParts) write_beginning();
      const size_t room = kParts - 1 - n_;
      size_t n = n_;
      for (size_t i = 0; i < room && at < end; i++, at += length) {
        const uint32_t c = utf8_decode(at, length);
        const bool cut = cuts.may_cut(before, c);
        lone_ids_[n] &= 0 - uint64_t{cut};
        starts_[n + 1] = ends_[n] = at;  // without a cut, the next character overwrites these
        lone_ids_[n + 1] = characters_->lone(c);
        n += cut;
        before = c;
      }
      is_cut |= n > n_;
      n_ = n;
    }
    ends_[n_] = end;
    if (ignore_merges_ && bytes > WordKey::kMaxBytes && !is_cut)  // no token has a cut inside
      if (const uint32_t token = model_.token(p, bytes); token != kNone)
        lone_ids_[n_] = PremergedChars::pack(&token, 1);
    pieces_[n_pieces_++] = {++n_, &found};
    if (begun_) flush();
  }

  // Encodes the parts of the pieces that were added.
  void flush() {
    if (n_ == 0) return;
    encode_parts();
    size_t begin = begun_ ? begin_ : ids_.size(), i = 0;
    for (size_t k = 0; k < n_pieces_; k++) {
      for (; i < pieces_[k].until; i++) append(i);
      *pieces_[k].found = {begin, ids_.size() - begin};
      begin = ids_.size();
    }
    n_ = n_pieces_ = 0;
    begun_ = false;
  }

 private:
  static constexpr size_t kParts = 256;          // of a block
  static constexpr uint32_t kLong = 0xFFFFFFFF;  // instead of a number of ids: a part's ids are in `long_ids_`

  // A piece that ends in the block.
  struct Piece {
    size_t until;  // the number of parts of the block up to its end
    IdRange* found;
  };

  // Makes room in a block that is full of the parts of one piece.
  void write_beginning() {
    if (n_pieces_ > 0) {  // which lie before it
      const size_t first = pieces_[n_pieces_ - 1].until, n = n_ - first + 1;
      n_ = first;
      flush();
      std::copy_n(starts_ + first, n, starts_);
      std::copy_n(ends_ + first, n, ends_);
      std::copy_n(lone_ids_ + first, n, lone_ids_);
      n_ = n - 1;
      return;
    }
    if (!begun_) begin_ = ids_.size();
    begun_ = true;
    encode_parts();
    for (size_t i = 0; i < n_; i++) append(i);
    starts_[0] = starts_[n_];
    lone_ids_[0] = lone_ids_[n_];
    n_ = 0;
  }

  // Returns the key by which the cache has a part. A part and a piece of the same bytes have the same ids, and share an
  // entry, unless a piece that is a token is not merged.
  WordKey cached(const WordKey& key) const { return {key.low, key.high | (ignore_merges_ ? WordKey::kPart : 0)}; }

  Word word(size_t i) const { return {starts_[i], static_cast<uint32_t>(ends_[i] - starts_[i])}; }

  // Appends the ids of a part.
  void append(size_t i) {
    if (__builtin_expect(counts_[i] == kLong, 0))
      return ids_.append(long_ids_.data() + part_ids_[i][0], static_cast<size_t>(part_ids_[i][1]));
    std::memcpy(ids_.room(WordCache::kMaxIds), part_ids_[i], sizeof part_ids_[i]);
    ids_.advance(counts_[i]);
  }

  // Finds the ids of the parts of the block.
  void encode_parts() {
    size_t n_missing = 0;
    for (size_t i = 0; i < n_; i++) {
      counts_[i] = static_cast<uint32_t>(PremergedChars::unpack(lone_ids_[i], part_ids_[i]));
      missing_[n_missing] = static_cast<uint16_t>(i);
      n_missing += lone_ids_[i] == 0;
    }
    for (size_t k = 0; k < n_missing; k++) {
      const size_t i = missing_[k];
      const auto [p, n] = word(i);
      keys_[i] = n > WordKey::kMaxBytes ? WordKey::too_long(n) : WordKey::of(p, n, readable_);
      caches_.words.prefetch(caches_.words.place(cached(keys_[i]).hash()));
    }
    n_missing = keep_missing(n_missing, [this](size_t i) {
      const WordKey key = cached(keys_[i]);
      counts_[i] = static_cast<uint32_t>(caches_.words.find(key, key.hash(), part_ids_[i]));
      return counts_[i] == 0;
    });
    for (size_t k = 0; k < n_missing; k++) words_->prefetch(keys_[missing_[k]].hash());
    n_missing = keep_missing(n_missing, [this](size_t i) {
      const uint32_t token = words_->find(keys_[i], keys_[i].hash());
      if (token == kNone || !is_mergeable(model_, *words_, token, keys_[i])) return true;
      part_ids_[i][0] = static_cast<int32_t>(token & WordTable::kId);
      counts_[i] = 1;
      return false;
    });
    long_ids_.clear();
    for (size_t k = 0; k < n_missing; k += kWordsAtOnce) merge(missing_ + k, std::min(kWordsAtOnce, n_missing - k));
  }

  // Keeps those of the first `n` missing parts for which `is_missing` is true; returns their number.
  template <class IsMissing>
  size_t keep_missing(size_t n, IsMissing&& is_missing) {
    size_t kept = 0;
    for (size_t k = 0; k < n; k++) {
      const uint16_t i = missing_[k];
      missing_[kept] = i;
      kept += is_missing(i);
    }
    return kept;
  }

  // Merges `n` parts, at most kWordsAtOnce.
  void merge(const uint16_t* parts, size_t n) {
    Word words[kWordsAtOnce];
    MergedWord merged[kWordsAtOnce];
    for (size_t k = 0; k < n; k++) words[k] = word(parts[k]);
    model_.encode_words(words, n, merged);
    for (size_t k = 0; k < n; k++) {
      const size_t i = parts[k];
      const auto& [ids, count] = merged[k];
      if (merged[k].is_cacheable()) {
        std::copy(ids, ids + WordCache::kMaxIds, part_ids_[i]);
        counts_[i] = count;
        const WordKey key = cached(keys_[i]);
        if (words[k].n <= WordKey::kMaxBytes) caches_.words.insert(key, key.hash(), ids, count);
        continue;
      }
      const size_t first = long_ids_.size();
      if (count > 0)
        long_ids_.append(ids, count);
      else
        model_.encode_part(words[k].p, words[k].n, scratch_, long_ids_);
      part_ids_[i][0] = static_cast<int32_t>(first);
      part_ids_[i][1] = static_cast<int32_t>(long_ids_.size() - first);
      counts_[i] = kLong;
    }
  }

  const Model& model_;
  const ByteCuts* const cuts_;
  const WordTable* const words_;
  const PremergedChars* const characters_;
  const bool ignore_merges_;
  PieceCaches& caches_;
  ModelScratch& scratch_;
  IdBuffer& ids_;
  size_t n_ = 0, n_pieces_ = 0;  // parts and pieces of the block
  bool readable_ = false;        // of its pieces
  bool begun_ = false;           // the ids of the block's first piece begin before it,
  size_t begin_ = 0;             // here
  Piece pieces_[kParts];
  const uint8_t *starts_[kParts], *ends_[kParts];  // of the parts
  uint64_t lone_ids_[kParts];                      // of the parts that are one character; else 0
  int32_t part_ids_[kParts][WordCache::kMaxIds];
  uint32_t counts_[kParts];   // of `part_ids_`, or kLong
  WordKey keys_[kParts];      // of the parts that are not one character
  uint16_t missing_[kParts];  // the parts whose ids are still to be found
  IdBuffer long_ids_;         // of the parts with many ids: where in it, and how many, is in `part_ids_`
};

}  // namespace tokenweir
