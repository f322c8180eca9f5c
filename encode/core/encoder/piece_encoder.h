// Pieces to ids: the tokens, what was seen before, and the model for the rest.
//
// Pieces wait until some are there. Where their entries stand in the tables is known at once, so the memory arrives while
// they wait.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/id_buffer.h"
#include "base/utf8.h"
#include "encoder/phrase_cache.h"
#include "encoder/word_cache.h"
#include "encoder/word_table.h"
#include "models/model.h"
#include "pretokenizers/frame.h"

namespace tokenweir {

// What one thread has seen.
struct SeenPieces {
  WordCache words;
  PhraseCache phrases;
};

class PieceEncoder {
 public:
  PieceEncoder(const Model& model, bool guarded, SeenPieces& seen, ModelScratch& scratch, IdBuffer& ids)
      : model_(model),
        words_(guarded ? nullptr : model.words()),
        parts_(guarded ? nullptr : model.parts()),
        cuts_(model.cuts()),
        guarded_(guarded),
        whole_(model.takes_tokens_whole()),
        seen_(seen),
        scratch_(scratch),
        ids_(ids) {}

  void operator()(const uint8_t* b, const uint8_t* e, const Frame& frame) {
    if (!cuts_ || static_cast<size_t>(e - b) <= WordKey::kMaxBytes) return add(b, e, frame.end);
    for (const uint8_t* cut; b < e; b = cut) add(b, cut = cuts_->next(b, e), frame.end);
  }

  void flush() {
    const Piece* const last = waiting_ + n_waiting_;
    for (Piece* piece = waiting_; piece < last; piece++) {
      piece->token = kNone;
      if (piece->n > WordKey::kMaxBytes) continue;
      if (words_) piece->token = words_->find(piece->key, piece->hash);
      if (piece->token == kNone) seen_.words.prefetch(piece->hash);
    }
    int32_t* out = ids_.room(kWaiting * WordCache::kMaxIds);
    for (const Piece* piece = waiting_; piece < last; piece++) {
      if (piece->token != kNone && is_made(piece->token, whole_, piece->key)) {
        *out++ = static_cast<int32_t>(piece->token & WordTable::kId);
        continue;
      }
      if (piece->n <= WordKey::kMaxBytes) {
        if (const size_t found = seen_.words.find(piece->key, piece->hash, out)) {
          out += found;
          continue;
        }
      }
      ids_.advance(static_cast<size_t>(out - (ids_.data() + ids_.size())));
      unseen(*piece);
      out = ids_.room(kWaiting * WordCache::kMaxIds);
    }
    ids_.advance(static_cast<size_t>(out - (ids_.data() + ids_.size())));
    n_waiting_ = 0;
  }

 private:
  static constexpr size_t kWaiting = 64;

  struct Piece {
    const uint8_t *p, *text_end;
    size_t n;
    WordKey key;  // if it is short enough to have one
    uint64_t hash;
    uint32_t token;  // of the table, with its flags; or none
  };

  void add(const uint8_t* b, const uint8_t* e, const uint8_t* text_end) {
    Piece& piece = waiting_[n_waiting_++];
    piece.p = b;
    piece.text_end = text_end;
    piece.n = static_cast<size_t>(e - b);
    if (piece.n <= WordKey::kMaxBytes) {
      piece.key = WordKey::of(b, piece.n, text_end - b >= 16);
      if (guarded_) piece.key.high |= WordKey::kGuarded;
      piece.hash = piece.key.hash();
      if (words_) words_->prefetch(piece.hash);
    } else if (is_phrase(piece)) {
      piece.hash = PhraseCache::hash(b, piece.n);
      seen_.phrases.prefetch(piece.hash);
    }
    if (n_waiting_ == kWaiting) flush();
  }

  // Whether a piece is kept among the phrases: one that can be cut is as fast without.
  bool is_phrase(const Piece& piece) const {
    return piece.n > WordKey::kMaxBytes && piece.n <= PhraseCache::kMaxBytes && !guarded_ &&
           !(parts_ && is_worth_cutting(piece));
  }

  // Whether a token that the table has is what its bytes become; `whole`: it is, whatever merging makes of them.
  bool is_made(uint32_t found, bool whole, const WordKey& key) const {
    if (whole || found & WordTable::kMade) return true;
    if (found & WordTable::kUnmade) return false;
    const bool made = model_.merges_to(found & WordTable::kId);
    words_->settle(key, made);
    return made;
  }

  // A piece that is no token, or a long one, and not among the short ones that were seen.
  void unseen(const Piece& piece) {
    const bool keep = is_phrase(piece);
    if (keep) {
      size_t n;
      if (const int32_t* found = seen_.phrases.find(piece.p, piece.n, piece.hash, n)) {
        std::memcpy(ids_.room(n), found, n * sizeof *found);
        return ids_.advance(n);
      }
    }
    const size_t first = ids_.size();
    if (parts_ && is_worth_cutting(piece))
      encode_parts(piece);
    else
      model_.encode(piece.p, piece.n, guarded_, scratch_, ids_, nullptr);
    const size_t count = ids_.size() - first;
    const int32_t* made = ids_.data() + first;
    if (keep)
      seen_.phrases.insert(piece.p, piece.n, piece.hash, made, count);
    else if (piece.n <= WordKey::kMaxBytes && count > 0 && count <= WordCache::kMaxIds)
      seen_.words.insert(piece.key, piece.hash, made, count);
  }

  // Whether a piece begins with a character beyond ASCII, or has one behind a space. After some pre-tokenizers pieces begin
  // or end inside a character; those are not cut.
  static bool is_worth_cutting(const Piece& piece) {
    if (piece.n < 4 || (piece.p[0] | piece.p[1]) < 0x80 || utf8_continues(piece.p[0])) return false;
    const uint8_t *end = piece.p + piece.n, *last = end - 1;
    while (last > piece.p && utf8_continues(*last)) last--;
    return last + utf8_length(*last) == end;
  }

  // The same part by part, most of them one character.
  void encode_parts(const Piece& piece) {
    const uint8_t *part = piece.p, *const end = part + piece.n;
    if (whole_ && model_.encode_token(part, piece.n, ids_)) return;
    uint32_t length;
    uint32_t before = utf8_decode(part, length);
    const uint8_t* at = part + length;
    bool one = before < ByteCuts::kCharacters;  // the part is one character
    const auto finish = [&] {
      if (one)
        ids_.advance(model_.encode_character(before, ids_.room(3)));
      else
        encode_part(part, static_cast<size_t>(at - part), piece.text_end);
    };
    while (at < end) {
      const uint32_t c = utf8_decode(at, length);
      if (parts_->may_cut(before, c)) {
        finish();
        part = at;
        one = true;
      } else {
        one = false;
      }
      before = c;
      at += length;
    }
    finish();
  }

  void encode_part(const uint8_t* p, size_t n, const uint8_t* text_end) {
    if (n > WordKey::kMaxBytes) return model_.encode_part(p, n, scratch_, ids_);
    WordKey key = WordKey::of(p, n, text_end - p >= 16);
    uint64_t hash = key.hash();
    const uint32_t token = words_->find(key, hash);
    if (token != kNone && is_made(token, false, key)) return ids_.push(token & WordTable::kId);
    key.high |= WordKey::kPart;
    hash = key.hash();
    if (const size_t found = seen_.words.find(key, hash, ids_.room(WordCache::kMaxIds))) return ids_.advance(found);
    const size_t first = ids_.size();
    model_.encode_part(p, n, scratch_, ids_);
    const size_t count = ids_.size() - first;
    if (count <= WordCache::kMaxIds) seen_.words.insert(key, hash, ids_.data() + first, count);
  }

  const Model& model_;
  const WordTable* const words_;
  const ByteCuts* const parts_;
  const SplitPoints* const cuts_;
  const bool guarded_, whole_;
  SeenPieces& seen_;
  ModelScratch& scratch_;
  IdBuffer& ids_;
  Piece waiting_[kWaiting];
  size_t n_waiting_ = 0;
};

}  // namespace tokenweir
