// Unigram: the segmentation of a text into pieces with the greatest sum of scores (Kudo, "Subword
// Regularization", 2018), found by the Viterbi algorithm over a trie of the pieces.
//
// A character that is not a piece by itself is also offered as an unknown piece. Its score is the worst score minus
// ten, and it competes with longer pieces. Of equal sums, the path whose last piece begins earlier wins.
//
// Sums are rounded from left to right, so rounding decides between mathematically equal segmentations ("...." as "."
// "..." or "..." "."). The type of the sum identifies the library: Unigram<double> is HuggingFace's `Unigram`
// (tokenizers 0.23.3), Unigram<float> is SentencePiece's (0.2.3), which restarts from zero when the sum is beyond
// 100,000. For the same reason a document is never split into words that are looked up.
//
// A place that no piece crosses is on every path. The best path to it is traced back, and the lattice
// restarts there with the sum so far. So the lattice is as long as a word or two, unless the text repeats one letter.
// Time is one walk of the trie per character, at most as long as the longest piece.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "base/errors.h"
#include "base/trie.h"
#include "base/utf8.h"
#include "models/model.h"
#include "vocabulary/hash_table.h"

namespace tokenweir {

template <class Score>
class Unigram : public Model {
 public:
  using Pieces = std::vector<std::string_view>;

  // Makes HuggingFace's model: every piece can match text, also that of `unk_id`; of equal pieces the last wins.
  // Without an `unk_id`, unknown text is an error. `encode` with `guarded` never yields an id of `control`.
  static Unigram huggingface(const Pieces& pieces, const std::vector<Score>& scores, std::optional<size_t> unk_id,
                             bool byte_fallback, const std::vector<uint32_t>& control) {
    static_assert(std::is_same_v<Score, double>);
    if (unk_id && *unk_id >= pieces.size())
      throw FileError("unk_id is " + std::to_string(*unk_id) + ", but there are " + std::to_string(pieces.size()) +
                      " pieces");
    check_scores(pieces, scores);
    Score lowest = std::numeric_limits<Score>::infinity();
    std::vector<Trie::Key> keys;
    for (size_t id = 0; id < pieces.size(); id++) {
      lowest = std::min(lowest, scores[id]);
      add_key(keys, pieces[id], id);
    }
    Unigram model(keys, scores, lowest, unk_id ? static_cast<uint32_t>(*unk_id) : kNone, control);
    if (byte_fallback)
      for (size_t byte = 0; byte < 256; byte++) {
        const uint32_t id = model.trie_.find(byte_piece(byte));
        model.byte_ids_[byte] = id == Trie::kAbsent ? kNone : id;
      }
    return model;
  }

  // Makes SentencePiece's model: normal and user-defined pieces match text; the score of the latter is 0.1 per byte
  // after the first. `types` are those of the model file.
  static Unigram sentencepiece(const Pieces& pieces, std::vector<Score> scores, std::string_view types, size_t unk_id,
                               bool byte_fallback, const std::vector<uint32_t>& control) {
    static_assert(std::is_same_v<Score, float>);
    if (types.size() != pieces.size())
      throw FileError(std::to_string(pieces.size()) + " pieces, but " + std::to_string(types.size()) + " types");
    if (unk_id >= pieces.size() || types[unk_id] != kUnknown)
      throw FileError("unk_id is " + std::to_string(unk_id) + ", which is not the unknown piece");
    check_scores(pieces, scores);
    Score lowest = std::numeric_limits<Score>::max();
    std::vector<Trie::Key> keys;
    std::array<uint32_t, 256> byte_ids;
    byte_ids.fill(kNone);
    for (size_t id = 0; id < pieces.size(); id++) {
      const std::string_view piece = pieces[id];
      if (piece.empty()) throw FileError("piece " + std::to_string(id) + " is empty");
      if (piece.find('\0') != piece.npos) throw FileError("piece " + std::to_string(id) + " has a null character");
      if (types[id] == kNormal) lowest = std::min(lowest, scores[id]);
      if (types[id] == kUserDefined) scores[id] = static_cast<Score>(0.1 * static_cast<double>(piece.size() - 1));
      if (types[id] == kNormal || types[id] == kUserDefined) add_key(keys, piece, id);
      for (size_t byte = 0; types[id] == kByte && byte < 256; byte++)
        if (piece == byte_piece(byte)) byte_ids[byte] = static_cast<uint32_t>(id);
    }
    Unigram model(keys, scores, lowest, static_cast<uint32_t>(unk_id), control);
    for (size_t byte = 0; byte_fallback && byte < 256; byte++)
      if (byte_ids[byte] == kNone) throw FileError("byte_fallback, but no piece " + byte_piece(byte));
    if (byte_fallback) model.byte_ids_ = byte_ids;
    return model;
  }

  void encode(const uint8_t* p, size_t n, bool guarded, ModelScratch& scratch, IdBuffer& out,
              std::vector<Span>* spans) const override {
    if (n >= kNone) throw Unsupported("a piece of 4 GiB or more without a boundary");
    if (guarded && guards_)
      segment<true>(p, n, scratch, out, spans);
    else
      segment<false>(p, n, scratch, out, spans);
  }

  std::optional<uint32_t> nameless() const override {
    if (std::is_same_v<Score, float> || unk_id_ == kNone) return std::nullopt;
    return unk_id_;
  }

  size_t trie_bytes() const { return trie_.bytes(); }

  // Tables that kernels use too.
  const Trie& trie() const { return trie_; }
  const std::vector<Score>& scores() const { return scores_; }
  Score unknown_score() const { return unknown_score_; }
  uint32_t unknown() const { return unk_id_; }                             // kNone without one
  const std::array<uint32_t, 256>& byte_ids() const { return byte_ids_; }  // kNone: no fallback

 private:
  static constexpr char kNormal = 1, kUnknown = 2, kUserDefined = 4, kByte = 6;
  static constexpr Score kUnknownPenalty = 10, kMaxSum = 100000;
  static constexpr size_t kLongest = 1024;  // of a piece, in bytes: each character may cost a walk of this length
  static constexpr size_t kLongestCharacter = 4;

  Unigram(const std::vector<Trie::Key>& keys, std::vector<Score> scores, Score lowest, uint32_t unk_id,
          const std::vector<uint32_t>& control)
      : trie_(keys), scores_(std::move(scores)), unknown_score_(lowest - kUnknownPenalty), unk_id_(unk_id) {
    byte_ids_.fill(kNone);
    for (const Trie::Key& key : keys) longest_ = std::max(longest_, key.bytes.size());
    guards_ = mark_control(control, scores_.size(), [](uint32_t) { return true; });
  }

  static void add_key(std::vector<Trie::Key>& keys, std::string_view piece, size_t id) {
    if (piece.size() > kLongest)
      throw Unsupported("piece " + std::to_string(id) + " of " + std::to_string(piece.size()) + " bytes; at most " +
                        std::to_string(kLongest) + " are possible");
    keys.push_back({piece, static_cast<uint32_t>(std::min<size_t>(id, UINT32_MAX))});
  }

  static void check_scores(const Pieces& pieces, const std::vector<Score>& scores) {
    if (scores.size() != pieces.size())
      throw FileError(std::to_string(pieces.size()) + " pieces, but " + std::to_string(scores.size()) + " scores");
    for (size_t id = 0; id < scores.size(); id++)
      if (!std::isfinite(scores[id]))
        throw FileError("the score of piece " + std::to_string(id) + " is " + std::to_string(scores[id]));
  }

  static std::string byte_piece(size_t byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(byte));
    return name;
  }

  // Converts the pieces of the best path to ids, from left to right. Adjacent unknown pieces are one run.
  template <bool Guarded>
  struct Output {
    const Unigram& model;
    const uint8_t* text;
    IdBuffer& out;
    std::vector<Span>* spans;
    size_t run = 0, run_end = 0;  // empty if equal

    void piece(uint32_t id, size_t begin, size_t end) {
      if (id == model.unk_id_) {
        if (run == run_end) run = begin;
        run_end = end;
        return;
      }
      finish_run();
      push(id, begin, end);
    }

    void finish_run() {
      if (run < run_end) unknown();
      run = run_end;
    }

   private:
    void push(uint32_t id, size_t begin, size_t end) {
      out.push(id);
      if (spans) spans->push_back({begin, end});
    }

    // Emits a run of unknown pieces. HuggingFace looks up the whole run once more, and falls back to its bytes if all
    // are tokens; each has the span of the run. SentencePiece expands each character; its last byte has the span, the
    // others empty ones.
    void unknown() {
      const std::string_view whole(reinterpret_cast<const char*>(text + run), run_end - run);
      if constexpr (std::is_same_v<Score, double>) {
        const uint32_t id = model.trie_.find(whole);
        if (id != Trie::kAbsent && allowed(id)) return push(id, run, run_end);
      }
      if (!std::all_of(whole.begin(), whole.end(), [&](char byte) { return allowed(byte_id(byte)); }))
        return push(model.unk_id_, run, run_end);
      Span place{run, run_end};
      for (size_t i = run; i < run_end; i++) {
        if constexpr (std::is_same_v<Score, float>) {
          if (!utf8_continues(text[i])) place.start = i;
          place.end = i + 1 == run_end || !utf8_continues(text[i + 1]) ? i + 1 : place.start;
        }
        push(byte_id(static_cast<char>(text[i])), place.start, place.end);
      }
    }

    uint32_t byte_id(char byte) const { return model.byte_ids_[static_cast<uint8_t>(byte)]; }
    bool allowed(uint32_t id) const { return id != kNone && !(Guarded && model.control_[id]); }
  };

  template <bool Guarded>
  void segment(const uint8_t* p, size_t n, ModelScratch& scratch, IdBuffer& out, std::vector<Span>* spans) const {
    auto& lattice = std::get<std::vector<BestPath<Score>>>(scratch.lattices);
    Output<Guarded> output{*this, p, out, spans};
    const uint8_t *const end = p + n, *from = p;  // `from`: start of the lattice
    size_t reach = 0;                             // the furthest place that a path has reached
    if (lattice.empty()) lattice.resize(1);
    lattice[0].score = 0;
    for (const uint8_t* q = p;;) {
      uint32_t at = static_cast<uint32_t>(q - from);
      if (at == reach) {  // no piece crosses
        trace(lattice, at, static_cast<size_t>(from - p), output);
        if (q == end) break;
        lattice[0].score = lattice[at].score;
        from = q;
        at = 0;
        reach = 0;
      }
      if (lattice.size() <= at + longest_ + kLongestCharacter)
        lattice.resize(2 * lattice.size() + longest_ + kLongestCharacter);
      if constexpr (std::is_same_v<Score, float>)
        if (std::fabs(lattice[at].score) > kMaxSum) rebase(lattice, at, reach);
      const Score so_far = lattice[at].score;
      const auto offer = [&](const uint8_t* to, uint32_t id, Score score) {
        const size_t place = static_cast<size_t>(to - from);
        while (reach < place) lattice[++reach].id = kNone;
        BestPath<Score>& best = lattice[place];
        if (best.id != kNone && !(score > best.score)) return false;
        best = {score, id, at};
        return true;
      };
      const uint8_t* const next = q + utf8_length(*q);
      bool known = false;
      trie_.prefixes(q, end, [&](const uint8_t* to, uint32_t id) {
        if (Guarded && control_[id]) return;
        offer(to, id, so_far + scores_[id]);
        known |= to == next;
      });
      if (!known && offer(next, unk_id_, so_far + unknown_score_) && unk_id_ == kNone)
        throw Unsupported("text with a character that no piece covers, and a Unigram model without unk_id");
      q = next;
    }
    output.finish_run();
  }

  // Subtracts the sum at `at` from all sums from there on.
  static void rebase(std::vector<BestPath<Score>>& lattice, size_t at, size_t reach) {
    const Score base = lattice[at].score;
    for (size_t i = at; i <= reach; i++) lattice[i].score -= base;
    lattice[at].score = 0;  // also where the sum was infinite
  }

  // Follows the best path back from `end`, reverses it, and emits its pieces.
  template <class Output>
  static void trace(std::vector<BestPath<Score>>& lattice, uint32_t end, size_t shift, Output& output) {
    uint32_t next = end;
    for (uint32_t at = end; at > 0;) {
      const uint32_t start = lattice[at].start;
      lattice[at].start = next;
      next = at;
      at = start;
    }
    for (uint32_t begin = 0, at = next; begin < end; begin = at, at = lattice[at].start)
      output.piece(lattice[at].id, shift + begin, shift + at);
  }

  Trie trie_;
  std::vector<Score> scores_;  // by id
  Score unknown_score_;
  uint32_t unk_id_;  // kNone without one
  size_t longest_ = 0;
  std::array<uint32_t, 256> byte_ids_;  // kNone without byte fallback
};

}  // namespace tokenweir
