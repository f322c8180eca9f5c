// A long piece of byte-level BPE, encoded part by part between its cuts (cuts/byte_cuts.h). Most parts of a run of
// Chinese are one character, whose ids are precomputed.
//
// A part that no table has leaves a gap in the ids. Gaps are merged in batches, and their ids inserted afterwards.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

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

  // Appends the ids of the piece [p, p + n), which `may_cut` accepts. `readable`: 16 bytes may be read from each of its
  // bytes. Returns whether the ids are complete; if not, some parts have left gaps.
  //
  // Characters are looked up in blocks, and so are the parts of a block, before any of their ids is written: look-ups do
  // not wait for one another.
  bool encode(const uint8_t* p, size_t n, bool readable) {
    constexpr size_t kBlock = 32;
    struct Character {
      const uint8_t* p;
      uint64_t lone_ids;
      bool cut_before;
    } block[kBlock];
    const uint8_t *part = p, *at = part, *const end = part + n;
    uint32_t before = ByteCuts::kCharacters;  // beside which no cut is possible
    uint64_t lone_ids = 0;                    // of a part that is one character; else 0
    bool complete = true;
    Part parts[kBlock];
    size_t n_parts = 0;
    const auto finish = [&](const uint8_t* part_end) {
      Part& made = parts[n_parts++];
      made = {part, static_cast<size_t>(part_end - part), lone_ids, {}};
      if (lone_ids || made.n > WordKey::kMaxBytes) return;
      made.key = WordKey::of(part, made.n, readable);
      words_->prefetch(made.key.hash());
      caches_.words.prefetch(caches_.words.place(cached(made.key).hash()));
    };
    const auto write = [&] {
      for (size_t i = 0; i < n_parts; i++)
        if (parts[i].lone_ids)
          ids_.advance(PremergedChars::unpack(parts[i].lone_ids, ids_.room(3)));
        else
          complete &= encode_part(parts[i]);
      n_parts = 0;
    };
    while (at < end) {
      size_t count = 0;
      for (uint32_t length; count < kBlock && at < end; at += length) {
        const uint32_t c = utf8_decode(at, length);
        block[count++] = {at, characters_->lone(c), cuts_->may_cut(before, c)};
        before = c;
      }
      for (size_t i = 0; i < count; i++) {
        if (block[i].cut_before) {
          finish(block[i].p);
          part = block[i].p;
        }
        lone_ids = block[i].p == part ? block[i].lone_ids : 0;
      }
      write();
    }
    if (const uint32_t token = ignore_merges_ && part == p ? model_.token(part, n) : kNone; token != kNone) {
      ids_.push(token);  // no token has a cut inside
      return true;
    }
    finish(end);
    write();
    return complete;
  }

  // Merges the parts that have left gaps, all at once, and inserts their ids.
  void fill_gaps() {
    if (n_gaps_ == 0) return;
    Word words[kWordsAtOnce];
    int32_t merged[kWordsAtOnce][WordBatch::kMaxIds];
    uint32_t counts[kWordsAtOnce];
    for (size_t k = 0; k < n_gaps_; k++) words[k] = {gaps_[k].p, static_cast<uint32_t>(gaps_[k].key.bytes())};
    model_.encode_words(words, n_gaps_, merged, counts);
    size_t ends[kWordsAtOnce + 1] = {};  // of each part's ids in `inserted_`
    inserted_.clear();
    for (size_t k = 0; k < n_gaps_; k++) {
      if (counts[k] > 0) {
        inserted_.append(merged[k], counts[k]);
        caches_.words.insert(gaps_[k].key, gaps_[k].key.hash(), merged[k], counts[k]);
      } else {
        model_.encode_part(words[k].p, words[k].n, scratch_, inserted_);
      }
      ends[k + 1] = inserted_.size();
    }
    ids_.room(inserted_.size());
    size_t end = ids_.size();
    for (size_t k = n_gaps_; k-- > 0; end = gaps_[k].at) {  // backwards, so that each id moves once
      int32_t* const at = ids_.data() + gaps_[k].at;
      std::copy_backward(at, ids_.data() + end, ids_.data() + end + ends[k + 1]);
      std::copy(inserted_.data() + ends[k], inserted_.data() + ends[k + 1], at + ends[k]);
    }
    ids_.advance(inserted_.size());
    n_gaps_ = 0;
  }

 private:
  // A part whose ids are still to be merged; they belong before the id at index `at`.
  struct Gap {
    size_t at;
    const uint8_t* p;
    WordKey key;
  };

  struct Part {
    const uint8_t* p;
    size_t n;
    uint64_t lone_ids;  // if it is one character; else 0
    WordKey key;        // if it is neither that nor too long for one
  };

  static WordKey cached(const WordKey& key) { return {key.low, key.high | WordKey::kPart}; }

  // Appends the ids of a part of several characters. Returns false on a cache miss, which leaves a gap.
  bool encode_part(const Part& part) {
    if (part.n > WordKey::kMaxBytes) {
      model_.encode_part(part.p, part.n, scratch_, ids_);
      return true;
    }
    const uint32_t token = words_->find(part.key, part.key.hash());
    if (token != kNone && is_mergeable(model_, *words_, token, part.key)) {
      ids_.push(token & WordTable::kId);
      return true;
    }
    const WordKey key = cached(part.key);
    if (const size_t found = caches_.words.find(key, key.hash(), ids_.room(WordCache::kMaxIds))) {
      ids_.advance(found);
      return true;
    }
    gaps_[n_gaps_++] = {ids_.size(), part.p, key};
    if (n_gaps_ == kWordsAtOnce) fill_gaps();
    return false;
  }

  const Model& model_;
  const ByteCuts* const cuts_;
  const WordTable* const words_;
  const PremergedChars* const characters_;
  const bool ignore_merges_;
  PieceCaches& caches_;
  ModelScratch& scratch_;
  IdBuffer& ids_;
  Gap gaps_[kWordsAtOnce];
  size_t n_gaps_ = 0;
  IdBuffer inserted_;  // the ids of the gaps
};

}  // namespace tokenweir
