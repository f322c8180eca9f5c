// Byte-pair encoding over the characters of a piece, as HuggingFace's `tokenizers` 0.23 does it (models/bpe).
//
// A piece of text begins as one symbol for each character. The symbol is the token that is spelled like the character,
// with the prefix before it unless it is the first, and the suffix after it if it is the last. A character without such
// a token becomes the tokens of its bytes, if the vocabulary has all of them; otherwise the unknown token. Without an
// unknown token it vanishes, and its neighbours can merge.
//
// Two quirks of the library are reproduced:
// - An unknown token is emitted late: at the next character that is a token, or at another unknown one that is not
//   fused with it. Byte tokens do not trigger this, so they are emitted before an unknown token on their left.
// - The offset of a token is the sum of the lengths of all tokens before it. A vanished character has no length, so it
//   shifts all tokens after it to the left.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/quote.h"
#include "models/live_pairs.h"
#include "models/merge.h"
#include "models/merge_words.h"
#include "models/model.h"
#include "vocabulary/character_ids.h"
#include "vocabulary/hash_table.h"
#include "vocabulary/merge_ids.h"
#include "vocabulary/vocabulary.h"

namespace tokenweir {

struct CharacterBpeOptions {
  std::optional<std::string> unknown;  // the unknown token
  std::string prefix, suffix;          // of characters that continue a word, and of those that end one
  bool fuse_unknown = false;           // neighbouring unknown characters become one token
  bool byte_fallback = false;
  bool ignore_merges = false;  // a piece that is a token becomes that token without merging
};

class CharacterBpe : public Model {
 public:
  // `merges` are in order of priority; a pair that is listed twice has its later place. Guarded text never yields an id
  // of `control`, except the unknown token.
  CharacterBpe(const Vocabulary& vocabulary, const Merges& merges, const CharacterBpeOptions& options,
               const std::vector<uint32_t>& control)
      : tokens_(vocabulary.ids.names()),
        table_(vocabulary.ids.table()),
        fuse_(options.fuse_unknown),
        ignore_merges_(options.ignore_merges),
        has_prefix_(!options.prefix.empty()),
        has_suffix_(!options.suffix.empty()) {
    find_characters(options);
    find_unknown(options);
    set_control(control);
    const std::vector<std::array<uint32_t, 3>> ids = merge_ids(merges, *table_, options.prefix.size());
    std::vector<uint32_t> merged_ids(ids.size());
    std::transform(ids.begin(), ids.end(), merged_ids.begin(), [](const auto& merge) { return merge[2]; });
    std::vector<OmittedMerge> omitted;
    const auto merge = [&](size_t i) { return Merge{ids[i][0], ids[i][1], ids[i][2], static_cast<uint32_t>(i)}; };
    pairs_ = LivePairs(tokens_.size(), symbols(), ids.size(), may_omit(ids), merge, &omitted).pairs();
    omitted_ = std::move(omitted);
    merged_ = std::move(merged_ids);
    guards_ = can_reach_control();
    find_split_points();
  }

  // Reads a serialized model. Control tokens are not serialized; `set_control` has to set the same ids again.
  template <class Reader>
  explicit CharacterBpe(Reader& kept) {
    fields(kept);
  }

  template <class Visit>
  void fields(Visit& visit) {
    visit(tokens_, table_, characters_, bytes_, unknown_, pairs_, merged_, omitted_, fuse_, ignore_merges_, has_prefix_,
          has_suffix_, guards_, split_points_);
  }

  void set_control(const std::vector<uint32_t>& control) {
    mark_control(control, tokens_.size(), [this](uint32_t id) { return id != unknown_ && !tokens_[id].empty(); });
  }

  const SplitPoints* split_points() const override { return split_points_.get(); }

  // With split points, every symbol is a character or a byte, independent of its place.
  bool encodes_words() const override { return split_points_ != nullptr; }

  void encode_words(const Word* parts, size_t n, MergedWord* out) const override {
    tokenweir::encode_words(pairs_, merged_.data(), parts, n, out,
                            [this](const Word& part, MergingWord& word, PairSearches& searches) {
                              const uint32_t count = begin_word(part, word.symbols());
                              searches.add(word, count);
                              return count;
                            });
  }

  // Tables that kernels use too.
  const TokenList& tokens() const { return tokens_; }
  const PairTable& pairs() const { return pairs_; }
  const SharedArray<OmittedMerge>& omitted() const { return omitted_; }
  const SharedArray<uint32_t>& merged() const { return merged_; }
  uint32_t priority(uint32_t left, uint32_t right) const { return pairs_.find(left, right); }
  uint32_t character(uint32_t c) const { return characters_[0][0].find(c); }  // kNone if it is not a token
  uint32_t byte(uint8_t byte) const { return bytes_[byte]; }                  // kNone without byte fallback

  void encode(const uint8_t* p, size_t n, bool guarded, ModelScratch& s, IdBuffer& out,
              std::vector<Span>* spans) const override {
    if (ignore_merges_) {
      const uint32_t id = table_->find({reinterpret_cast<const char*>(p), n});
      if (id != kNone && !(guarded && control_[id])) {
        out.push(id);
        if (spans) spans->push_back({0, n});
        return;
      }
    }
    if (n >= kNone) throw Unsupported("a piece of 4 GiB or more without a boundary");
    if (s.ids.size() < n) s.ids.resize(n);
    if (s.lengths.size() < n) s.lengths.resize(n);
    size_t count = symbols(p, n, guarded, s);
    Rules rules{*this, guarded};
    if (count <= kShort && !spans) {
      uint32_t priorities[kShort];
      for (size_t i = 0; i + 1 < count; i++) priorities[i] = rules.priority(s.ids[i], s.ids[i + 1]);
      count = merge_short(rules, s.ids.data(), priorities, count);
      for (size_t i = 0; i < count; i++) out.push(s.ids[i]);
      return;
    }
    merge_long(rules, s, count);
    size_t i = 0, at = 0;
    for (const auto& [id, end] : s.merged) {
      out.push(id);
      const size_t begin = at;
      for (; spans && i < end; i++) at += s.lengths[i];
      if (spans) spans->push_back({begin, at});
    }
  }

 private:
  struct Rules {
    const CharacterBpe& bpe;
    const bool guarded;

    uint32_t priority(uint32_t left, uint32_t right) const {
      const uint32_t found = bpe.pairs_.find(left, right);
      return guarded && found != kNone && bpe.control_[bpe.merged_[found]] ? kNone : found;
    }
    uint32_t merged(uint32_t, uint32_t, uint32_t priority) const { return bpe.merged_[priority]; }
  };

  // -- a piece --------------------------------------------------------------------------------------------------------

  // Writes the symbols of a piece to s.ids, and the bytes of each to s.lengths; returns their number, at most `n`.
  size_t symbols(const uint8_t* p, size_t n, bool guarded, ModelScratch& s) const {
    size_t count = 0, unknown_length = 0;  // bytes of the pending unknown token, or 0
    const auto push = [&](uint32_t id, size_t length) {
      s.ids[count] = id;
      s.lengths[count++] = static_cast<uint32_t>(length);
    };
    const auto push_unknown = [&] {
      if (unknown_length > 0) push(unknown_, unknown_length);
      unknown_length = 0;
    };
    for (size_t i = 0; i < n;) {
      uint32_t length;
      const uint32_t character = utf8_decode(p + i, length);
      const uint32_t id = characters_[has_prefix_ && i > 0][has_suffix_ && i + length == n].find(character);
      if (id != kNone && !(guarded && control_[id])) {
        push_unknown();
        push(id, length);
      } else if (falls_back(p + i, length, guarded)) {
        for (size_t k = 0; k < length; k++) push(bytes_[p[i + k]], 1);
      } else if (unknown_ != kNone) {
        if (!fuse_) push_unknown();
        unknown_length += length;
      }
      i += length;
    }
    push_unknown();
    return count;
  }

  // Writes the symbols of a word and returns their number; 0 if a character is unknown or they are too many.
  uint32_t begin_word(const Word& word, uint32_t* ids) const {
    uint32_t count = 0;
    ids[0] = 0;
    for (uint32_t at = 0, length; at < word.n; at += length) {
      const uint32_t id = character(utf8_decode(word.p + at, length));
      const uint32_t more = id != kNone ? 1 : length;
      if (count + more > MergingWord::kSymbols || (id == kNone && !falls_back(word.p + at, length, false))) return 0;
      if (id != kNone)
        ids[count] = id;
      else
        for (uint32_t k = 0; k < length; k++) ids[count + k] = bytes_[word.p[at + k]];
      count += more;
    }
    return count;
  }

  bool falls_back(const uint8_t* p, size_t length, bool guarded) const {
    for (size_t k = 0; k < length; k++) {
      const uint32_t id = bytes_[p[k]];
      if (id == kNone || (guarded && control_[id])) return false;
    }
    return true;
  }

  // -- the model ------------------------------------------------------------------------------------------------------

  void find_characters(const CharacterBpeOptions& options) {
    const std::string_view prefix = options.prefix, suffix = options.suffix;
    for (uint32_t id = 0; id < tokens_.size(); id++) {
      const std::string_view token = tokens_[id];
      const bool begins = has_prefix_ && token.substr(0, prefix.size()) == prefix;
      const bool ends =
          has_suffix_ && token.size() >= suffix.size() && token.substr(token.size() - suffix.size()) == suffix;
      for (int continues = 0; continues <= begins; continues++)
        for (int last = 0; last <= ends; last++) {
          const size_t skip = continues ? prefix.size() : 0, drop = last ? suffix.size() : 0;
          if (skip + drop >= token.size()) continue;
          const uint32_t character = only_character(token.substr(skip, token.size() - skip - drop));
          if (character != kNone) characters_[continues][last].insert(character, id);
        }
    }
  }

  void find_unknown(const CharacterBpeOptions& options) {
    std::fill(std::begin(bytes_), std::end(bytes_), kNone);
    for (int byte = 0; options.byte_fallback && byte < 256; byte++) {
      const char* digits = "0123456789ABCDEF";
      const char name[] = {'<', '0', 'x', digits[byte / 16], digits[byte % 16], '>'};
      bytes_[byte] = table_->find({name, sizeof name});
    }
    const auto missing = std::count(std::begin(bytes_), std::end(bytes_), kNone);
    if (missing < 256 && (has_prefix_ || has_suffix_))
      throw Unsupported(std::string("model: BPE with byte_fallback and ") +
                        (has_prefix_ ? "continuing_subword_prefix" : "end_of_word_suffix"));
    if (!options.unknown) return;
    unknown_ = table_->find(*options.unknown);
    if (unknown_ == kNone && missing > 0)
      throw Unsupported("model: BPE with the unk_token " + quoted(*options.unknown) + ", which the vocabulary lacks");
  }

  // The characters with which merging begins, without a prefix and suffix.
  std::vector<uint32_t> symbols() const {
    std::vector<uint32_t> ids;
    for (uint32_t id = 0; id < tokens_.size(); id++)
      if (const uint32_t c = only_character(tokens_[id]); c != kNone && character(c) == id) ids.push_back(id);
    return ids;
  }

  // Whether the table may omit pairs that never become adjacent. This requires that a token's name determines its
  // symbols: no symbol depends on its place, and neither the unknown token nor a byte token, whose name is not text,
  // merges. Nor may guarded text forbid a merge.
  bool may_omit(const std::vector<std::array<uint32_t, 3>>& merges) const {
    if (has_prefix_ || has_suffix_) return false;
    std::vector<bool> named(tokens_.size(), true);
    for (const uint32_t id : bytes_)
      if (id != kNone) named[id] = false;
    if (unknown_ != kNone) named[unknown_] = false;
    return std::all_of(merges.begin(), merges.end(),
                       [&](const auto& merge) { return named[merge[0]] && named[merge[1]] && !control_[merge[2]]; });
  }

  // Whether ordinary text may become a control token.
  bool can_reach_control() const {
    const auto reached = [&](uint32_t id) { return id != kNone && control_[id]; };
    if (std::any_of(merged_.begin(), merged_.end(), reached) ||
        std::any_of(std::begin(bytes_), std::end(bytes_), reached))
      return true;
    for (uint32_t id = 0; id < tokens_.size(); id++)
      if (control_[id] && (ignore_merges_ || is_character(id))) return true;
    return false;
  }

  bool is_character(uint32_t id) const {
    bool found = false;
    for_each_character(tokens_[id], [&](uint32_t character, size_t, size_t) {
      for (const auto& kind : characters_)
        for (const auto& ids : kind) found |= ids.find(character) == id;
    });
    return found;
  }

  // Whether every character that is not a token becomes bytes, none of which merges. A character's token may stand for
  // a byte token: Gemma has one for the tab.
  bool unknown_stay_apart() const {
    std::vector<bool> merges(tokens_.size());
    pairs_.for_each([&](uint32_t left, uint32_t right, uint32_t) { merges[left] = merges[right] = true; });
    for (uint32_t byte = 0; byte < 256; byte++) {
      const uint32_t character = byte < 0x80 ? characters_[0][0].find(byte) : kNone;
      if (bytes_[byte] == kNone ? character == kNone || control_[character]
                                : merges[bytes_[byte]] || control_[bytes_[byte]])
        return false;
    }
    return true;
  }

  // Builds the split points, except with a prefix or suffix, because a character's symbol then depends on its place,
  // and except with `ignore_merges`, because a whole piece may be one token.
  void find_split_points() {
    if (has_prefix_ || has_suffix_ || ignore_merges_) return;
    split_points_ = std::make_unique<SplitPoints>(merged_.size(), unknown_stay_apart());
    for (uint32_t id = 0; id < tokens_.size(); id++)
      if (const uint32_t character = only_character(tokens_[id]); character != kNone && !control_[id])
        split_points_->add_known(character);
    for (const uint32_t id : merged_) split_points_->add_token(tokens_[id]);
    for (uint32_t c = 0x80; c < LoneCharacters::kCharacters; c++) find_lone_character(c);
  }

  // Sets the ids of a non-ASCII character that no token joins to a neighbour.
  void find_lone_character(uint32_t c) {
    const uint32_t id = character(c);
    if (id != kNone && !control_[id]) return split_points_->set_lone(c, &id, 1);
    if (id != kNone || !split_points_->all_known()) return;
    uint8_t bytes[4];
    uint32_t ids[3];
    const uint32_t n = utf8_encode(c, bytes);
    for (uint32_t i = 0; i < n; i++) ids[i] = bytes_[bytes[i]];
    split_points_->set_lone(c, ids, n);
  }

  TokenList tokens_;
  std::shared_ptr<const TokenTable> table_;
  CharacterIds characters_[2][2];  // indexed by: continues the piece, ends the piece
  uint32_t bytes_[256];            // the byte tokens
  uint32_t unknown_ = kNone;
  PairTable pairs_;
  SharedArray<uint32_t> merged_;       // priority -> id
  SharedArray<OmittedMerge> omitted_;  // of the list of merges
  bool fuse_ = false, ignore_merges_ = false, has_prefix_ = false, has_suffix_ = false;
  std::unique_ptr<SplitPoints> split_points_;
};

}  // namespace tokenweir
