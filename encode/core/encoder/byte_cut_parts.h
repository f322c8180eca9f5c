// A piece of byte-level BPE that begins beyond ASCII, encoded part by part between its cuts (cuts/byte_cuts.h). Most
// parts of a run of Chinese are one character, whose ids are precomputed.
//
// Parts are handled in blocks, in loops without branches that text decides: where a part ends, and whether it is one
// character, is as good as random. A part that no table has leaves a gap in the ids. Gaps are merged in batches, and
// their ids inserted afterwards.
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
  // `cuts` and `words` are the model's tables; null if pieces are not cut, as in guarded text.
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

  // Appends the ids of a piece that `may_cut` accepts, and caches them; both are complete after `fill_gaps`. `readable`:
  // 16 bytes may be read from each byte of the piece.
  void encode(const PieceCaches::Entry& piece, bool readable) {
    begin_ = ids_.size();
    gaps_before_ = n_gaps_;
    const ByteCutTable cuts = cuts_->view();
    const uint8_t *at = piece.p, *const end = at + piece.n;
    starts_[0] = at;
    uint32_t length, before = utf8_decode(at, length);
    lone_ids_[0] = characters_->lone(before);
    for (at += length;;) {
      size_t n = 0;  // parts that end in this block
      for (size_t i = 0; i < kBlock && at < end; i++, at += length) {
        const uint32_t c = utf8_decode(at, length);
        const bool cut = cuts.may_cut(before, c);
        lone_ids_[n] &= 0 - uint64_t{cut};
        starts_[n + 1] = at;  // without a cut, the next character overwrites both
        lone_ids_[n + 1] = characters_->lone(c);
        n += cut;
        before = c;
      }
      if (at == end) {
        if (const uint32_t token = whole_token(piece, starts_[n]); token != kNone) {
          ids_.push(token);
          return caches_.insert(piece, ids_.data() + begin_, 1);
        }
        starts_[++n] = end;
      }
      write(n, readable);
      if (at == end) break;
      starts_[0] = starts_[n];
      lone_ids_[0] = lone_ids_[n];
    }
    if (n_gaps_ > gaps_before_)
      open_[n_open_++] = {piece, begin_, ids_.size(), gaps_before_, n_gaps_};
    else
      caches_.insert(piece, ids_.data() + begin_, ids_.size() - begin_);
  }

  // Merges the parts that have left gaps, inserts their ids, and caches the pieces that are complete then.
  void fill_gaps() {
    if (n_gaps_ == 0) return;
    size_t ends[kGaps + 1];  // of each part's ids in `inserted_`
    merge_gaps(ends);
    ids_.room(inserted_.size());
    size_t end = ids_.size();
    for (size_t k = n_gaps_; k-- > 0; end = gaps_[k].at) {  // backwards, so that each id moves once
      int32_t* const at = ids_.data() + gaps_[k].at;
      std::copy_backward(at, ids_.data() + end, ids_.data() + end + ends[k + 1]);
      std::copy(inserted_.data() + ends[k], inserted_.data() + ends[k + 1], at + ends[k]);
    }
    ids_.advance(inserted_.size());
    for (size_t i = 0; i < n_open_; i++) {
      const OpenPiece& open = open_[i];
      const size_t first = open.begin + ends[open.gaps_before];
      caches_.insert(open.piece, ids_.data() + first, open.end + ends[open.gaps_until] - first);
    }
    begin_ += ends[gaps_before_];
    gaps_before_ = n_open_ = n_gaps_ = 0;
  }

 private:
  static constexpr size_t kBlock = 32;  // characters
  static constexpr size_t kGaps = 64;   // more than a block can leave

  // A part whose ids are still to be merged; they belong before the id at index `at`.
  struct Gap {
    size_t at;
    const uint8_t* p;
    WordKey key;
  };

  // A piece with gaps: its ids so far, and the gaps before its first and its last one.
  struct OpenPiece {
    PieceCaches::Entry piece;
    size_t begin, end, gaps_before, gaps_until;
  };

  // Returns the token that a piece is without merging, if its last part begins at `last`; else kNone. No token has a cut
  // inside.
  uint32_t whole_token(const PieceCaches::Entry& piece, const uint8_t* last) const {
    return ignore_merges_ && last == piece.p ? model_.token(piece.p, piece.n) : kNone;
  }

  // Returns the key by which the cache has a part. A part and a piece of the same bytes have the same ids, and share an
  // entry, unless a piece that is a token is not merged.
  WordKey cached(const WordKey& key) const { return {key.low, key.high | (ignore_merges_ ? WordKey::kPart : 0)}; }

  static WordKey key_of(const uint8_t* p, size_t n, bool readable) {
    return n > WordKey::kMaxBytes ? WordKey::too_long(n) : WordKey::of(p, n, readable);
  }

  // Appends the ids of the first `n` parts of the block.
  void write(size_t n, bool readable) {
    int32_t ids[kBlock + 1][WordCache::kMaxIds];
    uint32_t counts[kBlock + 1];
    WordKey keys[kBlock + 1];
    uint8_t several[kBlock + 1], missing[kBlock + 1];  // parts of several characters; those of them without ids
    size_t n_several = 0, n_missing = 0;
    for (size_t i = 0; i < n; i++) {
      counts[i] = static_cast<uint32_t>(PremergedChars::unpack(lone_ids_[i], ids[i]));
      several[n_several] = static_cast<uint8_t>(i);
      n_several += lone_ids_[i] == 0;
    }
    for (size_t k = 0; k < n_several; k++) {
      const size_t i = several[k];
      keys[i] = key_of(starts_[i], static_cast<size_t>(starts_[i + 1] - starts_[i]), readable);
      caches_.words.prefetch(caches_.words.place(cached(keys[i]).hash()));
      words_->prefetch(keys[i].hash());
    }
    for (size_t k = 0; k < n_several; k++) {
      const size_t i = several[k];
      const WordKey key = cached(keys[i]);
      counts[i] = static_cast<uint32_t>(caches_.words.find(key, key.hash(), ids[i]));
      missing[n_missing] = static_cast<uint8_t>(i);
      n_missing += counts[i] == 0;
    }
    if (n_missing > 0) {
      n_missing = find_tokens(keys, missing, n_missing, ids, counts);
      if (n_gaps_ + n_missing > kGaps) fill_gaps();
    }
    const size_t first = ids_.size();
    int32_t* const to = ids_.room(n * WordCache::kMaxIds);
    size_t places[kBlock + 1], place = 0;
    for (size_t i = 0; i < n; i++) {
      std::memcpy(to + place, ids[i], sizeof ids[i]);
      places[i] = place;
      place += counts[i];
    }
    ids_.advance(place);
    for (size_t k = 0; k < n_missing; k++) {
      const size_t i = missing[k];
      gaps_[n_gaps_++] = {first + places[i], starts_[i], keys[i]};
    }
  }

  // Looks cache misses up among the tokens. Returns the number of those that remain `missing`.
  size_t find_tokens(const WordKey* keys, uint8_t* missing, size_t n, int32_t (*ids)[WordCache::kMaxIds],
                     uint32_t* counts) {
    size_t n_rest = 0;
    for (size_t k = 0; k < n; k++) {
      const size_t i = missing[k];
      const uint32_t token = words_->find(keys[i], keys[i].hash());
      if (token != kNone && is_mergeable(model_, *words_, token, keys[i])) {
        ids[i][0] = static_cast<int32_t>(token & WordTable::kId);
        counts[i] = 1;
        continue;
      }
      missing[n_rest++] = missing[k];
    }
    return n_rest;
  }

  // Merges the gaps to `inserted_`; `ends` begins with 0.
  void merge_gaps(size_t* ends) {
    inserted_.clear();
    ends[0] = 0;
    for (size_t first = 0; first < n_gaps_; first += kWordsAtOnce) {
      const Gap* const gaps = gaps_ + first;
      const size_t n = std::min(kWordsAtOnce, n_gaps_ - first);
      Word words[kWordsAtOnce];
      MergedWord merged[kWordsAtOnce];
      for (size_t k = 0; k < n; k++) words[k] = {gaps[k].p, static_cast<uint32_t>(gaps[k].key.bytes())};
      model_.encode_words(words, n, merged);
      for (size_t k = 0; k < n; k++) {
        const auto& [ids, count] = merged[k];
        if (count > 0)
          inserted_.append(ids, count);
        else
          model_.encode_part(words[k].p, words[k].n, scratch_, inserted_);
        if (words[k].n <= WordKey::kMaxBytes && merged[k].is_cacheable()) {
          const WordKey key = cached(gaps[k].key);
          caches_.words.insert(key, key.hash(), ids, count);
        }
        ends[first + k + 1] = inserted_.size();
      }
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
  const uint8_t* starts_[kBlock + 2];  // of the parts of a block, and the end of the last one
  uint64_t lone_ids_[kBlock + 2];      // of the parts that are one character; else 0
  size_t begin_, gaps_before_;         // of the piece that is encoded now
  Gap gaps_[kGaps];
  OpenPiece open_[kGaps];  // each has a gap
  size_t n_gaps_ = 0, n_open_ = 0;
  IdBuffer inserted_;  // the ids of the gaps
};

}  // namespace tokenweir
