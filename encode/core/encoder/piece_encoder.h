// Pieces to ids: look-ups in the table of tokens and in the caches, and the model for the rest.
//
// Pieces are collected into a batch. Adding a piece computes its key and prefetches its cache line; `flush` then looks
// all of them up, and encodes the cache misses together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/utf8.h"
#include "encoder/byte_cut_parts.h"
#include "encoder/cjk_parts.h"
#include "encoder/piece_caches.h"
#include "memory/id_buffer.h"
#include "models/model.h"
#include "pretokenizers/aligned_text.h"
#include "vocabulary/word_table.h"

namespace tokenweir {

class PieceEncoder {
 public:
  PieceEncoder(const Model& model, bool guarded, PieceCaches& caches, ModelScratch& scratch, IdBuffer& ids)
      : model_(model),
        words_(guarded ? nullptr : model.words()),
        split_points_(model.split_points()),
        guarded_(guarded),
        ignore_merges_(model.ignores_merges()),
        max_cached_bytes_(guarded ? 0 : model.max_cached_bytes()),
        batch_limit_(words_ ? WordBatch::kSize : kSmallBatch),
        caches_(caches),
        scratch_(scratch),
        ids_(ids),
        byte_cut_parts_(model, guarded ? nullptr : model.byte_cuts(), words_, caches, scratch, scratch.later_ids) {
    caches.words.grow_with(model.words(), token_flags());
  }

  // Fills the cache with the tokens, before the first text.
  void fill() { caches_.words.fill(); }

  // Adds the piece [b, e) of `text`. Its ids follow those of earlier pieces, at the latest after `flush`.
  void operator()(const uint8_t* b, const uint8_t* e, const AlignedText& text) {
    if (!split_points_ || static_cast<size_t>(e - b) <= WordKey::kMaxBytes) return add(b, e, text.end);
    for (const uint8_t* end; b < e; b = end) {
      end = block_end(b, e);
      if (guarded_ || static_cast<size_t>(end - b) > LongPieceCache::kMaxBytes)
        add_parts(b, end, text);
      else
        encode_block(b, end, text);
    }
  }

  // Adds `n` adjacent pieces: the first begins at `b`, and they end at b + ends[0], b + ends[1] and so on.
  void operator()(const uint8_t* const b, const uint32_t* ends, size_t n, const AlignedText& text) {
    uint32_t begin = 0;
    if (split_points_ || guarded_ || !words_) {
      for (size_t i = 0; i < n; begin = ends[i++]) (*this)(b + begin, b + ends[i], text);
      return;
    }
    const size_t size = static_cast<size_t>(text.end - b);
    size_t n_readable = n;  // pieces with 16 bytes of text after them
    while (n_readable > 0 && ends[n_readable - 1] + size_t{16} > size) n_readable--;
    for (size_t i = 0; i < n_readable;) {
      const size_t first = batch_.size, count = std::min(n_readable - i, WordBatch::kSize - first);
      for (size_t at = first; at < first + count; begin = ends[i++], at++) {
        const WordKey key = WordKey::from_16(b + begin, ends[i] - begin);
        const uint32_t place = caches_.words.place(key.hash());
        batch_.keys[at] = key;
        batch_.places[at] = place;
        caches_.words.prefetch(place);
        starts_[at] = b + begin;
        readable_[at] = true;
      }
      if ((batch_.size = first + count) == WordBatch::kSize) flush();
    }
    for (size_t i = n_readable; i < n; begin = ends[i++]) add(b + begin, b + ends[i], text.end);
  }

  // Encodes the pieces of the batch.
  void flush() {
    if (batch_.size == 0) return;
    int32_t found[(WordBatch::kSize + 1) * WordBatch::kMaxIds];
    CacheMiss misses[WordBatch::kSize + 1];
    const size_t n = caches_.words.find(batch_, found, misses);
    size_t done = 0;
    if (n > 0) encode_misses(misses, n);
    for (size_t k = 0; k < n; k++) {
      const size_t i = misses[k].piece;
      ids_.append(found + done, misses[k].ids_before - done);
      done = misses[k].ids_before;
      if (const uint32_t count = new_counts_[i]; count == kLater)
        encode_single(i);
      else if (count == kInRange)
        ids_.append(scratch_.later_ids.data() + ranges_[i].begin, ranges_[i].n);
      else
        ids_.append(new_ids_[i], count);
    }
    ids_.append(found + done, misses[n].ids_before - done);
    batch_.size = 0;
  }

 private:
  struct Piece {
    const uint8_t* p;
    size_t n;
    bool readable;  // 16 bytes may be read from each of its bytes
  };

  // Without a table of tokens the batch is small: a new piece is merged again each time it occurs in one batch.
  static constexpr size_t kSmallBatch = 128;

  // Instead of a number of new ids: `encode_single` has to encode the piece, or its ids are those for later.
  static constexpr uint32_t kLater = 0, kInRange = 0xFFFFFFFF;

  // The flags of the tokens that are the ids of their bytes as a piece.
  uint32_t token_flags() const { return ignore_merges_ ? 0 : WordTable::kMergeable; }

  Piece piece(size_t i) const { return {starts_[i], batch_.keys[i].bytes(), readable_[i]}; }

  // Adds the parts between split points.
  void add_parts(const uint8_t* b, const uint8_t* e, const AlignedText& text) {
    while (b < e) {
      if (CjkParts::begin_at(*b)) {
        flush();
        b = CjkParts(model_, guarded_, caches_, scratch_, ids_).encode(b, e, text.end);
      } else {
        const uint8_t* const cut = split_points_->next(b, e);
        add(b, cut, text.end);
        b = cut;
      }
    }
  }

  // Returns the end of the block that begins at `b`: some lines, up to a split point. Only the text of the block
  // decides where it ends. So text that comes again after a different beginning, as the turns of a conversation do, has
  // the same blocks.
  const uint8_t* block_end(const uint8_t* b, const uint8_t* e) const {
    constexpr size_t kMinBytes = 192, kMaxBytes = 1024;
    const size_t n = static_cast<size_t>(e - b);
    if (n <= kMinBytes) return e;
    const void* line_end = std::memchr(b + kMinBytes, '\n', std::min(n, kMaxBytes) - kMinBytes);
    if (!line_end && n <= kMaxBytes) return e;
    const uint8_t* at = line_end ? static_cast<const uint8_t*>(line_end) : b + kMaxBytes;
    while (utf8_continues(*at)) at--;
    return split_points_->next(at, e);
  }

  // Appends the ids of a block, from the cache if it is there.
  void encode_block(const uint8_t* b, const uint8_t* e, const AlignedText& text) {
    flush();
    const size_t bytes = static_cast<size_t>(e - b), first = ids_.size();
    const uint64_t hash = LongPieceCache::hash(b, bytes);
    size_t n;
    if (const int32_t* found = caches_.long_pieces.find(b, bytes, hash, n)) return ids_.append(found, n);
    add_parts(b, e, text);
    flush();
    caches_.long_pieces.insert(b, bytes, hash, ids_.data() + first, ids_.size() - first);
  }

  void add(const uint8_t* b, const uint8_t* e, const uint8_t* text_end) {
    const size_t at = batch_.size++, n = static_cast<size_t>(e - b);
    WordKey key = n > WordKey::kMaxBytes ? WordKey::too_long(n) : WordKey::of(b, n, text_end - b >= 16);
    if (guarded_) key.high |= WordKey::kGuarded;
    const uint32_t place = caches_.words.place(key.hash());
    batch_.keys[at] = key;
    batch_.places[at] = place;
    caches_.words.prefetch(place);
    starts_[at] = b;
    readable_[at] = text_end - e >= 16;
    if (batch_.size == batch_limit_) flush();
  }

  // Whether the cache of long pieces may keep a piece.
  bool is_cacheable(const Piece& piece) const { return piece.n <= max_cached_bytes_; }

  // Finds the ids of the cache misses, many at once, except for those that it leaves to `encode_single`.
  void encode_misses(const CacheMiss* misses, size_t n) {
    for (size_t k = 0; k < n; k++) {
      const size_t i = misses[k].piece;
      new_counts_[i] = kLater;
      if (words_ && is_short(i)) words_->prefetch(batch_.keys[i].hash());
    }
    const bool by_words = !guarded_ && model_.encodes_words();
    uint16_t rest[WordBatch::kSize], words[kWordsAtOnce], cut[WordBatch::kSize];
    size_t n_rest = 0, n_words = 0, n_cut = 0;
    for (size_t k = 0; k < n; k++) {
      const size_t i = misses[k].piece;
      if (by_words && is_short(i) && find_token(i)) continue;
      rest[n_rest++] = misses[k].piece;
      if (!is_cacheable(piece(i))) continue;
      hashes_[i] = LongPieceCache::hash(starts_[i], batch_.keys[i].bytes());
      caches_.long_pieces.prefetch(hashes_[i]);
    }
    for (size_t k = 0; k < n_rest; k++)
      if (is_cacheable(piece(rest[k]))) caches_.long_pieces.prefetch_entry(hashes_[rest[k]]);
    scratch_.later_ids.clear();
    for (size_t k = 0; by_words && k < n_rest; k++) {
      const size_t i = rest[k];
      const Piece piece = this->piece(i);
      if (is_cacheable(piece) && find_long(i)) continue;
      if (byte_cut_parts_.may_cut(piece.p, piece.n)) {
        cut[n_cut++] = rest[k];
      } else if (is_short(i)) {
        words[n_words++] = rest[k];
        if (n_words == kWordsAtOnce) merge_words_at(words, std::exchange(n_words, 0));
      }
    }
    if (n_words > 0) merge_words_at(words, n_words);
    if (n_cut > 0) encode_cut(cut, n_cut);
  }

  bool is_short(size_t i) const { return batch_.keys[i].bytes() <= WordKey::kMaxBytes; }

  // Sets the ids of a cache miss to its token, if it is one.
  bool find_token(size_t i) {
    const WordKey& key = batch_.keys[i];
    const uint32_t hash = key.hash(), flags = token_flags();
    uint32_t token = words_ ? words_->find(key, hash) : kNone;
    if (token == kNone && ignore_merges_ && !words_->is_complete(hash)) token = model_.token(starts_[i], key.bytes());
    if (token == kNone || (token & flags) != flags) return false;
    new_ids_[i][0] = static_cast<int32_t>(token & WordTable::kId);
    new_counts_[i] = 1;
    caches_.words.insert(key, hash, new_ids_[i], 1);
    return true;
  }

  // Sets the ids of a cache miss to those that the cache of long pieces has, also for a short piece of many ids.
  bool find_long(size_t i) {
    const Piece piece = this->piece(i);
    size_t n;
    const int32_t* const found = caches_.long_pieces.find(piece.p, piece.n, hashes_[i], n);
    if (found) keep_for_later(i, found, n);
    return found;
  }

  void keep_for_later(size_t i, const int32_t* ids, size_t n) {
    ranges_[i] = {scratch_.later_ids.size(), n};
    scratch_.later_ids.append(ids, n);
    new_counts_[i] = kInRange;
  }

  PieceCaches::Entry entry(size_t i) const {
    const Piece piece = this->piece(i);
    const bool cacheable = is_cacheable(piece);
    return {piece.p, piece.n, batch_.keys[i], cacheable, cacheable ? hashes_[i] : 0};
  }

  // Encodes cache misses with cuts.
  void encode_cut(const uint16_t* places, size_t n) {
    for (size_t k = 0; k < n; k++) {
      const Piece piece = this->piece(places[k]);
      byte_cut_parts_.add(piece.p, piece.n, piece.readable, ranges_[places[k]]);
      new_counts_[places[k]] = kInRange;
    }
    byte_cut_parts_.flush();
    for (size_t k = 0; k < n; k++) {
      const IdRange& range = ranges_[places[k]];
      caches_.insert(entry(places[k]), scratch_.later_ids.data() + range.begin, range.n);
    }
  }

  void merge_words_at(const uint16_t* places, size_t n) {
    Word words[kWordsAtOnce] = {};
    MergedWord merged[kWordsAtOnce];
    for (size_t k = 0; k < n; k++)
      words[k] = {starts_[places[k]], static_cast<uint32_t>(batch_.keys[places[k]].bytes())};
    model_.encode_words(words, n, merged);
    for (size_t k = 0; k < n; k++) {
      const size_t i = places[k];
      const WordKey& key = batch_.keys[i];
      const uint32_t hash = key.hash();
      const auto& [ids, count] = merged[k];
      const uint32_t token = ignore_merges_ || !words_ ? kNone : words_->find(key, hash);
      if (token != kNone && !(token & WordTable::kUnmergeable))
        words_->record_merge(key, count == 1 && static_cast<uint32_t>(ids[0]) == (token & WordTable::kId));
      if (merged[k].is_cacheable()) {
        std::copy(ids, ids + WordBatch::kMaxIds, new_ids_[i]);
        new_counts_[i] = count;
        caches_.words.insert(key, hash, ids, count);
      } else if (count > 0) {
        keep_for_later(i, ids, count);
        caches_.insert(entry(i), ids, count);
      }
    }
  }

  // Encodes one cache miss that `encode_misses` left: a long piece, or one of many symbols.
  void encode_single(size_t i) {
    const Piece piece = this->piece(i);
    const WordKey& key = batch_.keys[i];
    const uint32_t hash = key.hash();
    const bool is_short = piece.n <= WordKey::kMaxBytes, cacheable = is_cacheable(piece);
    if (is_short) {
      const uint32_t token = words_ ? words_->find(key, hash) : kNone;
      if (token != kNone && (ignore_merges_ || is_mergeable(model_, *words_, token, key)))
        return ids_.push(token & WordTable::kId);
      if (const size_t found = caches_.words.find(key, hash, ids_.room(WordCache::kMaxIds))) return ids_.advance(found);
    }
    if (cacheable) {
      size_t n;
      if (const int32_t* found = caches_.long_pieces.find(piece.p, piece.n, hashes_[i], n))
        return ids_.append(found, n);
    }
    const size_t first = ids_.size();
    model_.encode(piece.p, piece.n, guarded_, scratch_, ids_, nullptr);
    caches_.insert(entry(i), ids_.data() + first, ids_.size() - first);
  }

  const Model& model_;
  const WordTable* const words_;  // null in guarded text, and for models without one
  const SplitPoints* const split_points_;
  const bool guarded_, ignore_merges_;
  const size_t max_cached_bytes_, batch_limit_;
  PieceCaches& caches_;
  ModelScratch& scratch_;
  IdBuffer& ids_;
  ByteCutParts byte_cut_parts_;
  WordBatch batch_;
  const uint8_t* starts_[WordBatch::kSize];  // of the pieces of the batch
  bool readable_[WordBatch::kSize];
  uint64_t hashes_[WordBatch::kSize];                      // of the cache misses that `is_cacheable` accepts
  int32_t new_ids_[WordBatch::kSize][WordBatch::kMaxIds];  // of the cache misses
  uint32_t new_counts_[WordBatch::kSize];                  // of `new_ids_`, or kLater or kInRange
  IdRange ranges_[WordBatch::kSize];                       // in the ids for later
};

}  // namespace tokenweir
