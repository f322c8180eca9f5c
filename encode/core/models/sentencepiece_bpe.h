// Byte-pair encoding by scores, as SentencePiece 0.2.3 does it (bpe_model.cc), on text that is already normalized.
//
// 1. The text is divided into symbols: user-defined pieces, matched longest first from left to right, and the
//    characters between them. A user-defined piece never merges.
// 2. Two adjacent symbols whose joined text is a piece merge into it. The piece with the highest score merges first;
//    of equal scores, the leftmost.
// 3. A symbol that is a piece of type UNUSED is split again, into the pair of symbols that it was merged from. (The
//    library takes the last such pair that it saw anywhere in the text. But text that becomes a pair of symbols was
//    merged as it would be alone, so all these pairs are the same.)
// 4. A character that is not a piece is unknown. It becomes byte pieces; without byte fallback, adjacent unknown
//    characters become one unknown piece.
//
// SentencePiece looks up the joined text of two symbols. Here a table of pairs has every split of a piece into two
// symbols. A character that is not a piece, but part of one, is a symbol too, with an id after those of the pieces.
// Loading costs two look-ups for each character of the vocabulary; encoding hashes no text.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/quote.h"
#include "base/trie.h"
#include "models/merge.h"
#include "models/model.h"
#include "vocabulary/character_ids.h"
#include "vocabulary/hash_table.h"

namespace tokenweir {

class SentencePieceBpe : public Model {
 public:
  // `types`: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte. Guarded text never yields an id of
  // `control`, except the unknown piece.
  SentencePieceBpe(const std::vector<std::string>& pieces, const std::vector<float>& scores, std::string_view types,
                   uint32_t unknown, bool byte_fallback, const std::vector<uint32_t>& control)
      : n_pieces_(pieces.size()), types_(types), unknown_(unknown), byte_fallback_(byte_fallback) {
    check(pieces, scores);
    for (uint32_t id = 0; id < n_pieces_; id++)
      if (pieces[id].size() == 1 && pieces[id][0] == 0) types_[id] = kUnused;  // as the library does it
    for (const std::string& piece : pieces) lengths_.push_back(static_cast<uint32_t>(piece.size()));
    mark_control(control, n_pieces_, [this](uint32_t id) { return id != unknown_; });
    find_bytes(pieces);
    rank(scores);
    find_pairs(pieces);
    find_user_defined(pieces);
    find_split_points(pieces);
  }

  const SplitPoints* split_points() const override { return split_points_.get(); }

  // Tables that kernels use too. Pairs that make pieces of equal score have the priority of the first of these pieces.
  const PairTable& pairs() const { return *pairs_; }
  const std::vector<uint32_t>& merged() const { return merged_; }
  const std::vector<uint32_t>* ranks() const { return ties_ ? &ranks_ : nullptr; }
  uint32_t priority(uint32_t left, uint32_t right) const {
    const uint32_t found = pairs_->find(left, right);
    return ties_ && found != kNone ? ranks_[found] : found;
  }
  uint32_t character(uint32_t c) const { return characters_.find(c); }  // kNone if it is not a piece
  uint32_t byte(uint8_t byte) const { return bytes_[byte]; }
  // Whether merging can make pieces of type UNUSED, or there are symbols that are not pieces.
  bool has_other_symbols() const { return has_other_symbols_; }

  void encode(const uint8_t* p, size_t n, bool guarded, ModelScratch& s, IdBuffer& out,
              std::vector<Span>* spans) const override {
    if (n >= kNone) throw Unsupported("a text of 4 GiB or more");
    if (s.ids.size() < n) s.ids.resize(n);
    const size_t count = symbols(p, n, guarded, s.ids.data());
    Splits splits;
    Output output{*this, guarded, splits, p, out, spans};
    if (ties_)
      merge<true>(count, guarded, s, splits, output);
    else
      merge<false>(count, guarded, s, splits, output);
  }

 private:
  enum Type : char { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

  // A symbol is the id of a piece; from n_pieces_ on, a character that is only part of pieces; from kFrozen on, a
  // user-defined piece; or kNone, a character in no piece. The last two kinds never merge.
  static constexpr uint32_t kFrozen = PairTable::kMaxId + 1;
  static constexpr size_t kMaxBytes = 1024;  // of a piece: finding its splits takes time in the square of its length

  // The id of a piece of type UNUSED -> the pair of symbols whose joined text was that piece.
  using Splits = std::unordered_map<uint32_t, std::array<uint32_t, 2>>;

  // -- a text ---------------------------------------------------------------------------------------------------------

  template <bool Ties>
  struct Rules {
    const SentencePieceBpe& bpe;
    const bool guarded;
    Splits& splits;

    uint32_t priority(uint32_t left, uint32_t right) const {
      if (left >= kFrozen || right >= kFrozen) return kNone;
      const uint32_t found = bpe.pairs_->find(left, right);
      if (found == kNone) return kNone;
      const uint32_t id = bpe.merged_[found];
      if (guarded && bpe.control_[id]) return kNone;
      if (bpe.has_unused_ && bpe.types_[id] == kUnused) splits[id] = {left, right};
      return Ties ? bpe.ranks_[found] : found;
    }
    uint32_t merged(uint32_t left, uint32_t right, uint32_t priority) const {
      return bpe.merged_[Ties ? bpe.pairs_->find(left, right) : priority];
    }
  };

  size_t symbols(const uint8_t* p, size_t n, bool guarded, uint32_t* ids) const {
    size_t count = 0;
    const uint8_t* const end = p + n;
    while (p < end) {
      const uint8_t* frozen_end = nullptr;
      if (begins_user_defined_[*p])
        user_defined_.prefixes(p, end, [&](const uint8_t* q, uint32_t id) {
          if (guarded && control_[id]) return;
          frozen_end = q;
          ids[count] = kFrozen + id;
        });
      if (!frozen_end) {
        uint32_t length;
        ids[count] = characters_.find(utf8_decode(p, length));
        frozen_end = p + length;
      }
      p = frozen_end;
      count++;
    }
    return count;
  }

  template <bool Ties, class Output>
  void merge(size_t count, bool guarded, ModelScratch& s, Splits& splits, Output& output) const {
    Rules<Ties> rules{*this, guarded, splits};
    if (count <= kShort) {
      uint32_t priorities[kShort];
      for (size_t i = 0; i + 1 < count; i++) priorities[i] = rules.priority(s.ids[i], s.ids[i + 1]);
      count = merge_short(rules, s.ids.data(), priorities, count);
      for (size_t i = 0; i < count; i++) output.symbol(s.ids[i]);
    } else {
      merge_long(rules, s, count);
      for (const auto& [id, end] : s.merged) output.symbol(id);
    }
  }

  // Converts the final symbols to ids, from left to right.
  struct Output {
    const SentencePieceBpe& bpe;
    const bool guarded;
    const Splits& splits;
    const uint8_t* text;
    IdBuffer& ids;
    std::vector<Span>* spans;
    size_t at = 0;
    bool after_unknown = false;

    void symbol(uint32_t symbol) {
      if (symbol >= kFrozen && symbol != kNone) return piece(symbol - kFrozen);
      if (symbol >= bpe.n_pieces_ || (guarded && bpe.control_[symbol])) return unknown();
      if (bpe.types_[symbol] != kUnused) return piece(symbol);
      const auto split = splits.find(symbol);
      if (split == splits.end()) return unknown();  // one character
      this->symbol(split->second[0]);
      this->symbol(split->second[1]);
    }

   private:
    void piece(uint32_t id) {
      const size_t begin = at;
      ids.push(id);
      at += bpe.lengths_[id];
      if (spans) spans->push_back({begin, at});
      after_unknown = false;
    }

    // Emits an unknown character. Of its byte pieces only the last one has a span, as in the library.
    void unknown() {
      const size_t begin = at, length = utf8_length(text[at]);
      at += length;
      if (bpe.byte_fallback_) {
        for (size_t i = 0; i < length; i++) {
          ids.push(bpe.bytes_[text[begin + i]]);
          if (spans) spans->push_back({begin, i + 1 < length ? begin : at});
        }
      } else if (after_unknown) {
        if (spans) spans->back().end = at;
      } else {
        ids.push(bpe.unknown_);
        if (spans) spans->push_back({begin, at});
        after_unknown = true;
      }
    }
  };

  // -- the model ------------------------------------------------------------------------------------------------------

  static std::string named(size_t id, const std::string& piece) {
    return "piece " + std::to_string(id) + " (" + quoted(piece) + ")";
  }

  bool merges(size_t id) const { return types_[id] == kNormal || types_[id] == kUnused; }

  void check(const std::vector<std::string>& pieces, const std::vector<float>& scores) const {
    if (scores.size() != n_pieces_ || types_.size() != n_pieces_)
      throw FileError(std::to_string(n_pieces_) + " pieces with " + std::to_string(scores.size()) + " scores and " +
                      std::to_string(types_.size()) + " types");
    if (n_pieces_ > PairTable::kMaxId)
      throw Unsupported(std::to_string(n_pieces_) + " pieces; at most " + std::to_string(PairTable::kMaxId) + " fit");
    for (size_t id = 0; id < n_pieces_; id++) {
      if (pieces[id].empty()) throw FileError("piece " + std::to_string(id) + " is empty");
      if (types_[id] < kNormal || types_[id] > kByte)
        throw FileError(named(id, pieces[id]) + " has the type " + std::to_string(static_cast<uint8_t>(types_[id])) +
                        "; types are 1 to 6");
      if (pieces[id].find('\0') != std::string::npos && types_[id] != kUnused &&
          !(byte_fallback_ && pieces[id].size() == 1))
        throw FileError("piece " + std::to_string(id) + " has a null character");
      if (merges(id) && std::isnan(scores[id])) throw FileError(named(id, pieces[id]) + " has no number as its score");
      if ((merges(id) || types_[id] == kUserDefined) && pieces[id].size() > kMaxBytes)
        throw Unsupported("a piece of " + std::to_string(pieces[id].size()) + " bytes; at most " +
                          std::to_string(kMaxBytes) + " are possible");
    }
    if (unknown_ >= n_pieces_ || types_[unknown_] != kUnknown)
      throw FileError("the unknown piece " + std::to_string(unknown_) + " is not of type 2");
  }

  void find_bytes(const std::vector<std::string>& pieces) {
    std::fill(std::begin(bytes_), std::end(bytes_), kNone);
    if (!byte_fallback_) return;
    const std::string_view digits = "0123456789ABCDEF";
    for (uint32_t id = 0; id < n_pieces_; id++) {
      if (types_[id] != kByte) continue;
      const std::string& name = pieces[id];
      const size_t high = name.size() == 6 ? digits.find(name[3]) : std::string::npos;
      const size_t low = name.size() == 6 ? digits.find(name[4]) : std::string::npos;
      if (high == std::string::npos || low == std::string::npos || name.substr(0, 3) != "<0x" || name[5] != '>')
        throw FileError(named(id, name) + " is of type 6 and names no byte");
      bytes_[high * 16 + low] = id;
    }
    for (size_t byte = 0; byte < 256; byte++)
      if (bytes_[byte] == kNone) throw FileError("byte_fallback without a piece for byte " + std::to_string(byte));
  }

  // Maps a score to an integer in the same order, with zero above minus zero.
  static uint32_t height(float score) {
    uint32_t bits;
    std::memcpy(&bits, &score, sizeof bits);
    return bits >> 31 ? ~bits : bits | 1u << 31;
  }

  // Sorts the pieces that merging can make, the highest score first.
  void rank(const std::vector<float>& scores) {
    for (uint32_t id = 0; id < n_pieces_; id++)
      if (merges(id)) merged_.push_back(id);
    const auto higher = [&](uint32_t a, uint32_t b) { return height(scores[a]) > height(scores[b]); };
    if (!std::is_sorted(merged_.begin(), merged_.end(), higher)) std::sort(merged_.begin(), merged_.end(), higher);
    for (uint32_t priority = 0; priority < merged_.size(); priority++) {
      const bool tied = priority > 0 && !higher(merged_[priority - 1], merged_[priority]);
      ranks_.push_back(tied ? ranks_.back() : priority);
      ties_ |= tied;
    }
  }

  void find_pairs(const std::vector<std::string>& pieces) {
    std::vector<std::string> parts = pieces;  // characters from n_pieces_ on
    for (const uint32_t id : merged_)
      if (const uint32_t character = only_character(pieces[id]); character != kNone) characters_.insert(character, id);
    for (const uint32_t id : merged_)
      for_each_character(pieces[id], [&](uint32_t character, size_t at, size_t length) {
        if (length == pieces[id].size() || characters_.find(character) != kNone) return;
        characters_.insert(character, static_cast<uint32_t>(parts.size()));
        parts.push_back(pieces[id].substr(at, length));
      });
    has_other_symbols_ = parts.size() > n_pieces_ || std::any_of(merged_.begin(), merged_.end(),
                                                                 [&](uint32_t id) { return types_[id] == kUnused; });
    if (parts.size() > PairTable::kMaxId)
      throw Unsupported(std::to_string(parts.size()) + " pieces and characters; at most " +
                        std::to_string(PairTable::kMaxId) + " fit");
    const TokenList list(parts);
    TokenTable table(list);
    for (uint32_t id = 0; id < parts.size(); id++) {
      if (id < n_pieces_ && !merges(id)) continue;
      if (table.find(list[id]) != kNone) throw FileError(named(id, pieces[id]) + " is there twice");
      table.insert(id);
    }
    std::unordered_set<std::string_view> user_defined;
    for (uint32_t id = 0; id < n_pieces_; id++) {
      if (types_[id] != kUserDefined) continue;
      const uint32_t other = table.find(list[id]);
      if ((other != kNone && other < n_pieces_) || !user_defined.insert(list[id]).second)
        throw FileError(named(id, pieces[id]) + " is there twice");
    }
    std::vector<std::array<uint32_t, 3>> splits;
    for (uint32_t priority = 0; priority < merged_.size(); priority++) {
      const std::string_view piece = list[merged_[priority]];
      const size_t first = splits.size();
      for_each_character(piece, [&](uint32_t, size_t at, size_t) {
        if (at == 0) return;
        const uint32_t left = table.find(piece.substr(0, at));
        if (left == kNone) return;
        const uint32_t right = table.find(piece.substr(at));
        if (right != kNone) splits.push_back({left, right, priority});
      });
      has_unused_ |= types_[merged_[priority]] == kUnused && splits.size() > first;
    }
    pairs_ = std::make_unique<PairTable>(splits.size());
    for (const auto& [left, right, priority] : splits) {
      pairs_->insert(left, right, priority);
      guards_ |= control_[merged_[priority]];
    }
  }

  void find_user_defined(const std::vector<std::string>& pieces) {
    std::vector<Trie::Key> keys;
    for (uint32_t id = 0; id < n_pieces_; id++) {
      if (types_[id] == kUserDefined) {
        keys.push_back({pieces[id], id});
        begins_user_defined_[static_cast<uint8_t>(pieces[id][0])] = true;
      }
      guards_ |= control_[id] && (types_[id] == kUserDefined || (merges(id) && only_character(pieces[id]) != kNone));
    }
    user_defined_ = Trie(keys);
  }

  // A cut beside an unknown character is safe only with byte fallback; without it, adjacent unknown characters become
  // one piece.
  void find_split_points(const std::vector<std::string>& pieces) {
    split_points_ = std::make_unique<SplitPoints>(n_pieces_, byte_fallback_);
    for (const uint32_t id : merged_)
      if (const uint32_t character = only_character(pieces[id]);
          character != kNone && types_[id] == kNormal && !control_[id])
        split_points_->add_known(character);
    for (uint32_t id = 0; id < n_pieces_; id++)
      if (merges(id) || types_[id] == kUserDefined) split_points_->add_token(pieces[id]);
    for (uint32_t c = 0x80; c < LoneCharacters::kCharacters; c++) find_lone_character(c);
  }

  // Sets the ids of a non-ASCII character that no token joins to a neighbour.
  void find_lone_character(uint32_t c) {
    const uint32_t id = characters_.find(c);
    if (id < n_pieces_ && types_[id] == kNormal && !control_[id]) return split_points_->set_lone(c, &id, 1);
    if (id != kNone || !byte_fallback_) return;
    uint8_t bytes[4];
    uint32_t ids[3];
    const uint32_t n = utf8_encode(c, bytes);
    for (uint32_t i = 0; i < n; i++) ids[i] = bytes_[bytes[i]];
    if (!begins_user_defined_[bytes[0]]) split_points_->set_lone(c, ids, n);
  }

  size_t n_pieces_;
  std::string types_;              // by id
  std::vector<uint32_t> lengths_;  // in bytes, by id
  uint32_t unknown_;
  bool byte_fallback_;
  uint32_t bytes_[256];
  CharacterIds characters_;
  std::unique_ptr<PairTable> pairs_;
  std::vector<uint32_t> merged_;  // priority -> id
  std::vector<uint32_t> ranks_;   // priority -> the first one of an equal score
  bool ties_ = false;
  bool has_other_symbols_ = false;
  bool has_unused_ = false;  // merging can make a piece of type UNUSED
  Trie user_defined_;
  bool begins_user_defined_[256] = {};
  std::unique_ptr<SplitPoints> split_points_;
};

}  // namespace tokenweir
