// Pieces to ids: the tokens, what was seen before, and the model for the rest.
//
// Pieces wait until some are there. Where their entries stand in the tables is known at once, so the memory arrives while
// they wait.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/id_buffer.h"
#include "base/utf8.h"
#include "encoder/seen_pieces.h"
#include "encoder/cjk_parts.h"
#include "vocabulary/word_table.h"
#include "models/model.h"
#include "pretokenizers/frame.h"

namespace tokenweir {

class PieceEncoder {
 public:
  PieceEncoder(const Model& model, bool guarded, SeenPieces& seen, ModelScratch& scratch, IdBuffer& ids)
      : model_(model),
        words_(guarded ? nullptr : model.words()),
        byte_cuts_(guarded ? nullptr : model.byte_cuts()),
        characters_(model.characters()),
        split_points_(model.split_points()),
        guarded_(guarded),
        whole_(model.takes_tokens_whole()),
        longest_phrase_(guarded ? 0 : model.longest_kept()),
        most_(words_ ? WordBatch::kSize : kFewer),
        seen_(seen),
        scratch_(scratch),
        ids_(ids) {}

  void operator()(const uint8_t* b, const uint8_t* e, const Frame& frame) {
    if (!split_points_ || static_cast<size_t>(e - b) <= WordKey::kMaxBytes) return add(b, e, frame.end);
    for (const uint8_t* end; b < e; b = end) {
      end = passage_end(b, e);
      if (guarded_ || static_cast<size_t>(end - b) > PhraseCache::kMaxBytes)
        add_parts(b, end, frame);
      else
        encode_passage(b, end, frame);
    }
  }

  // The same for `n` neighbours at once: they begin at `b` and end at b + ends[0], b + ends[1] and so on.
  void operator()(const uint8_t* const b, const uint32_t* ends, size_t n, const Frame& frame) {
    uint32_t begin = 0;
    if (split_points_ || guarded_ || !words_) {
      for (size_t i = 0; i < n; begin = ends[i++]) (*this)(b + begin, b + ends[i], frame);
      return;
    }
    const size_t size = static_cast<size_t>(frame.end - b);
    size_t roomy = n;  // pieces with 16 bytes of text behind them
    while (roomy > 0 && ends[roomy - 1] + size_t{16} > size) roomy--;
    for (size_t i = 0; i < roomy;) {
      const size_t first = batch_.size, count = std::min(roomy - i, WordBatch::kSize - first);
      for (size_t at = first; at < first + count; begin = ends[i++], at++) {
        const WordKey key = WordKey::from_16(b + begin, ends[i] - begin);
        const uint32_t place = seen_.words.place(key.hash());
        batch_.keys[at] = key;
        batch_.places[at] = place;
        seen_.words.prefetch(place);
        starts_[at] = b + begin;
        roomy_[at] = true;
      }
      if ((batch_.size = first + count) == WordBatch::kSize) flush();
    }
    for (size_t i = roomy; i < n; begin = ends[i++]) add(b + begin, b + ends[i], frame.end);
  }

  void flush() {
    if (batch_.size == 0) return;
    int32_t found[(WordBatch::kSize + 1) * WordBatch::kMaxIds];
    MissingWord missing[WordBatch::kSize + 1];
    const size_t n = seen_.words.find(batch_, found, missing);
    size_t done = 0;
    if (n > 0) encode_missing(missing, n);
    for (size_t k = 0; k < n; k++) {
      const size_t i = missing[k].piece;
      ids_.append(found + done, missing[k].ids_before - done);
      done = missing[k].ids_before;
      if (counts_[i] > 0)
        ids_.append(made_[i], counts_[i]);
      else
        encode_other(i);
    }
    ids_.append(found + done, missing[n].ids_before - done);
    fill_gaps();
    batch_.size = 0;
  }

 private:
  struct Piece {
    const uint8_t* p;
    size_t n;
    bool roomy;  // at least 16 bytes may be read from each of its bytes
  };

  // A part of a piece whose ids, not known yet, belong before id number `at`.
  struct Gap {
    size_t at;
    const uint8_t* p;
    WordKey key;
  };

  // Where no table has the tokens, a new piece is merged each time that it comes before its batch is encoded.
  static constexpr size_t kFewer = 128;

  Piece piece(size_t i) const { return {starts_[i], batch_.keys[i].bytes(), roomy_[i]}; }

  // The parts between split points.
  void add_parts(const uint8_t* b, const uint8_t* e, const Frame& frame) {
    while (b < e) {
      if (CjkParts::begin_at(*b)) {
        flush();
        b = CjkParts(model_, guarded_, seen_, scratch_, ids_).encode(b, e, frame.end);
      } else {
        const uint8_t* const cut = split_points_->next(b, e);
        add(b, cut, frame.end);
        b = cut;
      }
    }
  }

  // Some lines, up to a split point that the text there tells: a text that is met again with something before it or behind
  // it, as the beginning of a conversation is, has the same passages.
  const uint8_t* passage_end(const uint8_t* b, const uint8_t* e) const {
    constexpr size_t kLeast = 192, kMost = 1024;
    const size_t n = static_cast<size_t>(e - b);
    if (n <= kLeast) return e;
    const void* line_end = std::memchr(b + kLeast, '\n', std::min(n, kMost) - kLeast);
    if (!line_end && n <= kMost) return e;
    const uint8_t* at = line_end ? static_cast<const uint8_t*>(line_end) : b + kMost;
    while (utf8_continues(*at)) at--;
    return split_points_->next(at, e);
  }

  void encode_passage(const uint8_t* b, const uint8_t* e, const Frame& frame) {
    flush();
    const size_t bytes = static_cast<size_t>(e - b), first = ids_.size();
    const uint64_t hash = PhraseCache::hash(b, bytes);
    size_t n;
    if (const int32_t* found = seen_.phrases.find(b, bytes, hash, n)) return ids_.append(found, n);
    add_parts(b, e, frame);
    flush();
    seen_.phrases.insert(b, bytes, hash, ids_.data() + first, ids_.size() - first);
  }

  void add(const uint8_t* b, const uint8_t* e, const uint8_t* text_end) {
    const size_t at = batch_.size++, n = static_cast<size_t>(e - b);
    WordKey key = n > WordKey::kMaxBytes ? WordKey::too_long(n) : WordKey::of(b, n, text_end - b >= 16);
    if (guarded_) key.high |= WordKey::kGuarded;
    const uint32_t place = seen_.words.place(key.hash());
    batch_.keys[at] = key;
    batch_.places[at] = place;
    seen_.words.prefetch(place);
    starts_[at] = b;
    roomy_[at] = text_end - e >= 16;
    if (batch_.size == most_) flush();
  }

  // Whether a piece may be kept among the phrases.
  bool is_phrase(const Piece& piece) const { return piece.n <= longest_phrase_; }

  // Whether a token that the table has is what its bytes become; `whole`: it is, whatever merging makes of them.
  bool is_made(uint32_t found, bool whole, const WordKey& key) const {
    if (whole || found & WordTable::kMade) return true;
    if (found & WordTable::kUnmade) return false;
    const bool made = model_.merges_to(found & WordTable::kId);
    words_->settle(key, made);
    return made;
  }

  // Fills in `made_` and `counts_` for the `n` pieces `missing`: for those that are tokens, and for those that merging alone
  // decides upon, many at once. The count of any other is 0.
  void encode_missing(const MissingWord* missing, size_t n) {
    for (size_t k = 0; k < n; k++) {
      const size_t i = missing[k].piece;
      counts_[i] = 0;
      const Piece one = piece(i);
      if (words_ && one.n <= WordKey::kMaxBytes) words_->prefetch(batch_.keys[i].hash());
      if (is_phrase(one)) {
        hashes_[i] = PhraseCache::hash(one.p, one.n);
        seen_.phrases.prefetch(hashes_[i]);
      }
    }
    for (size_t k = 0; k < n; k++)
      if (const size_t i = missing[k].piece; is_phrase(piece(i))) seen_.phrases.approach(hashes_[i]);
    if (guarded_ || !model_.encodes_words()) return;
    const uint32_t flags = whole_ ? 0 : WordTable::kMade;
    uint16_t places[kWordsAtOnce];
    size_t n_words = 0;
    for (size_t k = 0; k < n; k++) {
      const size_t i = missing[k].piece;
      const WordKey& key = batch_.keys[i];
      if (key.bytes() > WordKey::kMaxBytes) continue;
      const uint32_t hash = key.hash();
      uint32_t token = words_ ? words_->find(key, hash) : kNone;
      if (token == kNone && whole_ && !words_->is_complete(hash)) token = model_.token(starts_[i], key.bytes());
      if (token != kNone && (token & flags) == flags) {
        made_[i][0] = static_cast<int32_t>(token & WordTable::kId);
        counts_[i] = 1;
        seen_.words.insert(key, hash, made_[i], 1);
      } else if (is_word(i)) {
        places[n_words++] = missing[k].piece;
        if (n_words == kWordsAtOnce) encode_words_at(places, std::exchange(n_words, 0));
      }
    }
    if (n_words > 0) encode_words_at(places, n_words);
  }

  // Whether merging has to say what becomes of a piece that was not found, and it alone.
  bool is_word(size_t i) const {
    const Piece piece = this->piece(i);
    if (byte_cuts_ && is_worth_cutting(piece)) return false;
    size_t n;
    return !seen_.phrases.find(piece.p, piece.n, hashes_[i], n);  // as a word of many ids
  }

  void encode_words_at(const uint16_t* places, size_t n) {
    Word words[kWordsAtOnce] = {};
    int32_t ids[kWordsAtOnce][WordBatch::kMaxIds];
    uint32_t counts[kWordsAtOnce];
    for (size_t k = 0; k < n; k++) words[k] = {starts_[places[k]], static_cast<uint32_t>(batch_.keys[places[k]].bytes())};
    model_.encode_words(words, n, ids, counts);
    for (size_t k = 0; k < n; k++) {
      const size_t i = places[k];
      const WordKey& key = batch_.keys[i];
      const uint32_t hash = key.hash();
      std::copy(ids[k], ids[k] + WordBatch::kMaxIds, made_[i]);
      counts_[i] = counts[k];
      const uint32_t token = whole_ || !words_ ? kNone : words_->find(key, hash);
      if (token != kNone && !(token & WordTable::kUnmade))
        words_->settle(key, counts[k] == 1 && static_cast<uint32_t>(ids[k][0]) == (token & WordTable::kId));
      if (counts[k] > 0) seen_.words.insert(key, hash, ids[k], counts[k]);
    }
  }

  // A piece that was not seen before this batch, and is none that many are encoded of at once.
  void encode_other(size_t i) {
    const Piece piece = this->piece(i);
    const WordKey& key = batch_.keys[i];
    const uint32_t hash = key.hash();
    const bool is_short = piece.n <= WordKey::kMaxBytes, keep = is_phrase(piece), cut = byte_cuts_ && is_worth_cutting(piece);
    if (is_short) {
      const uint32_t token = words_ ? words_->find(key, hash) : kNone;
      if (token != kNone && is_made(token, whole_, key)) return ids_.push(token & WordTable::kId);
      if (const size_t found = seen_.words.find(key, hash, ids_.room(WordCache::kMaxIds))) return ids_.advance(found);
    }
    if (keep) {
      size_t n;
      if (const int32_t* found = seen_.phrases.find(piece.p, piece.n, hashes_[i], n)) return ids_.append(found, n);
    }
    const size_t first = ids_.size();
    bool complete = true;
    if (cut)
      complete = encode_parts(piece);
    else
      model_.encode(piece.p, piece.n, guarded_, scratch_, ids_, nullptr);
    const bool worth = keep && (is_short || !cut || seen_.phrases.meet(hashes_[i]));
    if (!complete) return;  // it is kept when it comes again
    const size_t count = ids_.size() - first;
    const int32_t* made = ids_.data() + first;
    if (is_short && count > 0 && count <= WordCache::kMaxIds)
      seen_.words.insert(key, hash, made, count);
    else if (worth)
      seen_.phrases.insert(piece.p, piece.n, hashes_[i], made, count);
  }

  // Whether a piece begins with a character beyond ASCII, or has one behind a space. After some pre-tokenizers pieces begin
  // or end inside a character; those are not cut.
  static bool is_worth_cutting(const Piece& piece) {
    if (piece.n < 4 || (piece.p[0] | piece.p[1]) < 0x80 || utf8_continues(piece.p[0])) return false;
    const uint8_t *end = piece.p + piece.n, *last = end - 1;
    while (last > piece.p && utf8_continues(*last)) last--;
    return last + utf8_length(*last) == end;
  }

  // The same part by part, most of them one character. Some characters are looked at before any of their ids is written:
  // what is asked for one need not wait until it is known what became of the one before. Returns whether it left no gap.
  bool encode_parts(const Piece& piece) {
    constexpr size_t kSome = 32;
    struct Character {
      const uint8_t* p;
      uint64_t alone;
      bool cut;  // before it
    } some[kSome];
    const uint8_t *part = piece.p, *at = part, *const end = part + piece.n;
    uint32_t before = ByteCuts::kCharacters;  // what is never cut beside
    uint64_t alone = 0;                       // the part's ids, if it is one character that may be alone
    bool complete = true;
    const auto finish = [&](const uint8_t* part_end) {
      if (alone)
        ids_.advance(PremergedChars::unpack(alone, ids_.room(3)));
      else
        complete &= encode_part(part, static_cast<size_t>(part_end - part), piece.roomy);
    };
    while (at < end) {
      size_t n = 0;
      for (uint32_t length; n < kSome && at < end; at += length) {
        const uint32_t c = utf8_decode(at, length);
        some[n++] = {at, characters_->alone(c), byte_cuts_->may_cut(before, c)};
        before = c;
      }
      for (size_t i = 0; i < n; i++) {
        if (some[i].cut) {
          finish(some[i].p);
          part = some[i].p;
        }
        alone = some[i].p == part ? some[i].alone : 0;
      }
    }
    if (const uint32_t token = whole_ && part == piece.p ? model_.token(part, piece.n) : kNone; token != kNone) {
      ids_.push(token);  // no token has a cut inside
      return true;
    }
    finish(end);
    return complete;
  }

  // Appends the ids of a part; false: it was not seen before, and has left a gap instead.
  bool encode_part(const uint8_t* p, size_t n, bool roomy) {
    if (n > WordKey::kMaxBytes) {
      model_.encode_part(p, n, scratch_, ids_);
      return true;
    }
    WordKey key = WordKey::of(p, n, roomy);
    const uint32_t token = words_->find(key, key.hash());
    if (token != kNone && is_made(token, false, key)) {
      ids_.push(token & WordTable::kId);
      return true;
    }
    key.high |= WordKey::kPart;
    if (const size_t found = seen_.words.find(key, key.hash(), ids_.room(WordCache::kMaxIds))) {
      ids_.advance(found);
      return true;
    }
    gaps_[n_gaps_++] = {ids_.size(), p, key};
    if (n_gaps_ == kWordsAtOnce) fill_gaps();
    return false;
  }

  // Merges the parts that have left gaps, all at once, and puts their ids in.
  void fill_gaps() {
    if (n_gaps_ == 0) return;
    Word words[kWordsAtOnce];
    int32_t made[kWordsAtOnce][WordBatch::kMaxIds];
    uint32_t counts[kWordsAtOnce];
    for (size_t k = 0; k < n_gaps_; k++) words[k] = {gaps_[k].p, static_cast<uint32_t>(gaps_[k].key.bytes())};
    model_.encode_words(words, n_gaps_, made, counts);
    size_t ends[kWordsAtOnce + 1] = {};  // of the ids of each, one part behind the other
    filling_.clear();
    for (size_t k = 0; k < n_gaps_; k++) {
      if (counts[k] > 0) {
        filling_.append(made[k], counts[k]);
        seen_.words.insert(gaps_[k].key, gaps_[k].key.hash(), made[k], counts[k]);
      } else {
        model_.encode_part(words[k].p, words[k].n, scratch_, filling_);
      }
      ends[k + 1] = filling_.size();
    }
    ids_.room(filling_.size());
    size_t end = ids_.size();
    for (size_t k = n_gaps_; k-- > 0; end = gaps_[k].at) {  // from the last one on, so that each id moves once
      int32_t* const at = ids_.data() + gaps_[k].at;
      std::copy_backward(at, ids_.data() + end, ids_.data() + end + ends[k + 1]);
      std::copy(filling_.data() + ends[k], filling_.data() + ends[k + 1], at + ends[k]);
    }
    ids_.advance(filling_.size());
    n_gaps_ = 0;
  }

  const Model& model_;
  const WordTable* const words_;
  const ByteCuts* const byte_cuts_;
  const PremergedChars* const characters_;
  const SplitPoints* const split_points_;
  const bool guarded_, whole_;
  const size_t longest_phrase_;
  const size_t most_;  // pieces that wait together
  SeenPieces& seen_;
  ModelScratch& scratch_;
  IdBuffer& ids_;
  WordBatch batch_;
  const uint8_t* starts_[WordBatch::kSize];  // of the pieces of the batch
  bool roomy_[WordBatch::kSize];
  uint64_t hashes_[WordBatch::kSize];  // of missing pieces that may be kept among the phrases
  int32_t made_[WordBatch::kSize][WordBatch::kMaxIds];  // of pieces of the batch that were not seen before
  uint32_t counts_[WordBatch::kSize];                   // how many ids these are; 0: it takes `encode_other`
  Gap gaps_[kWordsAtOnce];
  size_t n_gaps_ = 0;
  IdBuffer filling_;  // what they get
};

}  // namespace tokenweir
