// Byte-pair encoding of one piece.
//
// One merge loop serves HuggingFace's merge lists and tiktoken's ranks: a pair has a priority, and a priority has a
// result. A merge list gives each pair its own priority; ranks give every split of a token the token's rank.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "memory/id_buffer.h"
#include "models/live_pairs.h"
#include "models/merge.h"
#include "models/merge_words.h"
#include "models/model.h"
#include "models/premerged_chars.h"
#include "vocabulary/hash_table.h"
#include "vocabulary/merge_ids.h"
#include "vocabulary/token_splits.h"
#include "vocabulary/vocabulary.h"

namespace tokenweir {

class Bpe : public Model {
 public:
  // `ignore_merges`: a piece that is a token becomes that token without merging.
  Bpe(const Vocabulary& vocabulary, bool ignore_merges)
      : tokens_(vocabulary.bytes), ignore_merges_(ignore_merges), table_(vocabulary.table()) {
    std::fill(std::begin(byte_ids_), std::end(byte_ids_), kNone);
    for (uint32_t id = 0; id < tokens_.size(); id++)
      if (vocabulary.reachable[id] && tokens_[id].size() == 1) byte_ids_[static_cast<uint8_t>(tokens_[id][0])] = id;
    for (int byte = 0; byte < 256; byte++)  // a byte that UTF-8 does not contain needs no token
      if (byte_ids_[byte] == kNone && utf8_contains(static_cast<uint8_t>(byte)))
        throw Unsupported("a byte-level vocabulary without a token for byte " + std::to_string(byte));
  }

  // Sets HuggingFace's merges, in order of priority. A pair that is listed twice has its later place.
  void set_merges(const Vocabulary& vocabulary, const Merges& merges) {
    std::vector<std::array<uint32_t, 3>> ids = merge_ids(merges, *vocabulary.ids.table());
    const auto is_never_met = [&](const auto& merge) { return tokens_[merge[0]].empty() || tokens_[merge[1]].empty(); };
    ids.erase(std::remove_if(ids.begin(), ids.end(), is_never_met), ids.end());
    std::vector<uint32_t> merged_ids(ids.size());
    std::transform(ids.begin(), ids.end(), merged_ids.begin(), [](const auto& merge) { return merge[2]; });
    std::vector<OmittedMerge> omitted;
    const auto merge = [&](size_t i) { return Merge{ids[i][0], ids[i][1], ids[i][2], static_cast<uint32_t>(i)}; };
    const LivePairs live(tokens_.size(), symbols(), ids.size(), !may_make_control(merged_ids), merge, &omitted);
    omitted_ = std::move(omitted);
    index(vocabulary, live, std::move(merged_ids));
  }

  // Sets tiktoken's ranks: every split of a token into two tokens merges with the token's rank, which is its id.
  void set_ranks(const Vocabulary& vocabulary) {
    uint64_t cost = 0;
    for (uint32_t id = 0; id < tokens_.size(); id++) {
      const uint64_t size = tokens_[id].size();
      if (size > kMaxRanked)
        throw Unsupported("a ranked token of " + std::to_string(size) + " bytes; at most " +
                          std::to_string(kMaxRanked) + " are possible");
      cost += size * size;
    }
    if (cost > kMaxRankedCost) throw Unsupported("ranked tokens that are too long in total to find their splits");
    const TokenSplits splits = token_splits(tokens_, *table_);
    std::vector<uint32_t> merged_ids(tokens_.size());
    std::iota(merged_ids.begin(), merged_ids.end(), 0);
    const auto merge = [&](size_t i) {
      return Merge{splits[i].left, splits[i].right, splits[i].whole, splits[i].whole};
    };
    const bool may_omit = !guards_;  // any token may be merged
    index(vocabulary, LivePairs(tokens_.size(), symbols(), splits.size(), may_omit, merge), std::move(merged_ids));
  }

  // Reads a serialized model. Control tokens are not serialized; `set_control` has to be called again.
  template <class Reader>
  explicit Bpe(Reader& kept) {
    fields(kept);
  }

  template <class Visit>
  void fields(Visit& visit) {
    visit(tokens_, ignore_merges_, table_, byte_ids_, pairs_, merged_, omitted_, characters_, ascii_pairs_, words_,
          byte_cuts_);
  }

  // Sets the control tokens, which `encode` with `guarded` never yields. Must be called before the merges are set,
  // because they decide which pairs are omitted; on a deserialized model, with the same ids as before.
  void set_control(const std::vector<uint32_t>& ids) {
    guards_ = mark_control(ids, tokens_.size(), [this](uint32_t id) { return !tokens_[id].empty(); });
  }

  const WordTable* words() const override { return words_.get(); }
  const ByteCuts* byte_cuts() const override { return byte_cuts_.get(); }
  const PremergedChars* characters() const override { return &characters_; }
  bool ignores_merges() const override { return ignore_merges_; }

  bool merges_to(uint32_t id) const override {
    const std::string_view token = tokens_[id];
    for (const char byte : token)
      if (byte_ids_[static_cast<uint8_t>(byte)] == kNone) return false;
    ModelScratch scratch;
    IdBuffer ids;
    encode_part(reinterpret_cast<const uint8_t*>(token.data()), token.size(), scratch, ids);
    return ids.size() == 1 && static_cast<uint32_t>(ids.data()[0]) == id;
  }

  uint32_t token(const uint8_t* p, size_t n) const override {
    return n == 1 ? byte_ids_[*p] : table_->find({reinterpret_cast<const char*>(p), n});
  }

  void encode_part(const uint8_t* p, size_t n, ModelScratch& scratch, IdBuffer& out) const override {
    merge_bytes(p, n, false, scratch, out);
  }

  void encode_words(const Word* parts, size_t n, MergedWord* out) const override {
    tokenweir::encode_words(pairs_, merged_.data(), parts, n, out,
                            [this](const Word& part, MergingWord& word, PairSearches& searches) {
                              return begin_word(part, word, searches);
                            });
  }

  // Tables that kernels use too.
  const PairTable& pairs() const { return pairs_; }
  const SharedArray<OmittedMerge>& omitted() const { return omitted_; }
  const SharedArray<uint32_t>& merged() const { return merged_; }
  const uint32_t* byte_ids() const { return byte_ids_; }
  const TokenList& tokens() const { return tokens_; }

  // The priority of a pair, or kNone; with `guarded`, kNone also if the pair becomes a control token.
  uint32_t priority(uint32_t left, uint32_t right, bool guarded) const {
    const uint32_t found = pairs_.find(left, right);
    return guarded && found != kNone && is_control(merged_[found]) ? kNone : found;
  }

  // Whether the token's bytes, as a whole piece without guard, become this token.
  bool is_reachable(uint32_t id) const {
    const std::string_view token = tokens_[id];
    if (token.empty() || table_->find(token) != id) return false;
    return ignore_merges_ || merges_to(id);
  }

  void encode(const uint8_t* p, size_t n, bool guarded, ModelScratch& scratch, IdBuffer& out,
              std::vector<Span>* spans) const override {
    const size_t first = out.size();
    merge(p, n, guarded, scratch, out);
    size_t at = 0;
    for (size_t i = first; spans && i < out.size(); i++) {  // the bytes of the tokens are the bytes of the piece
      const size_t end = at + tokens_[static_cast<size_t>(out.data()[i])].size();
      spans->push_back({at, end});
      at = end;
    }
  }

 private:
  // Prefetch distance, in tokens, while a table is built.
  static constexpr uint32_t kAhead = 16;

  // Finding the splits of a token takes time in the square of its length, so the sum of the squares is bounded.
  static constexpr size_t kMaxRanked = 4096;
  static constexpr uint64_t kMaxRankedCost = uint64_t{1} << 32;

  void merge(const uint8_t* p, size_t n, bool guarded, ModelScratch& scratch, IdBuffer& out) const {
    if (ignore_merges_ || n == 1) {
      const uint32_t id = token(p, n);
      if (id != kNone && !(guarded && control_[id])) {
        out.push(id);
        return;
      }
    }
    merge_bytes(p, n, guarded, scratch, out);
  }

  void merge_bytes(const uint8_t* p, size_t n, bool guarded, ModelScratch& scratch, IdBuffer& out) const {
    if (n <= kShort)
      merge_short(p, n, guarded, out);
    else
      merge_long(p, n, guarded, scratch, out);
  }

  // The ids of single bytes, with which merging begins.
  std::vector<uint32_t> symbols() const {
    std::vector<uint32_t> ids;
    std::copy_if(std::begin(byte_ids_), std::end(byte_ids_), std::back_inserter(ids),
                 [](uint32_t id) { return id != kNone; });
    return ids;
  }

  bool may_make_control(const std::vector<uint32_t>& merged_ids) const {
    return std::any_of(merged_ids.begin(), merged_ids.end(), [this](uint32_t id) { return is_control(id); });
  }

  // Builds the other tables, for both kinds of merges.
  void index(const Vocabulary& vocabulary, const LivePairs& live, std::vector<uint32_t> merged_ids) {
    pairs_ = live.pairs();
    characters_ = PremergedChars(pairs_, merged_ids, byte_ids_, tokens_);
    merged_ = std::move(merged_ids);
    ascii_pairs_ = {size_t{128} * 128, kNone};
    for (uint32_t a = 0; a < 128; a++)
      for (uint32_t b = 0; b < 128; b++) ascii_pairs_[a << 7 | b] = pairs_.find(byte_ids_[a], byte_ids_[b]);
    words_ = std::make_unique<WordTable>(tokens_.size());
    byte_cuts_ = std::make_unique<ByteCuts>();
    for (uint32_t id = 0; id < tokens_.size(); id++) {
      if (id + kAhead < tokens_.size()) words_->prefetch_insert(tokens_[id + kAhead]);
      const std::string_view token = tokens_[id];
      if (!vocabulary.reachable[id] || token.empty()) continue;
      byte_cuts_->add_token(token);
      if (token.size() > WordKey::kMaxBytes) continue;
      const uint32_t found = token.size() > 1 ? id : byte_ids_[static_cast<uint8_t>(token[0])];
      words_->insert(token, live.is_reachable(found) ? found | WordTable::kMergeable : found);
    }
    if (!byte_cuts_->finish()) byte_cuts_.reset();
  }

  struct Rules {
    const Bpe& bpe;
    const bool guarded;

    uint32_t priority(uint32_t left, uint32_t right) const { return bpe.priority(left, right, guarded); }
    uint32_t merged(uint32_t, uint32_t, uint32_t priority) const { return bpe.merged_[priority]; }
    uint32_t whole(const uint8_t* p, size_t i, size_t n) const {
      return guarded ? kNone : bpe.characters_.token(p, i, n);
    }
    uint32_t byte(uint8_t b) const { return bpe.byte_ids_[b]; }
    uint32_t ascii_pair(uint8_t a, uint8_t b) const {
      return guarded ? priority(byte(a), byte(b)) : bpe.ascii_pairs_[a << 7 | b];
    }
  };

  // Writes the first symbols of a word, and the priorities of their pairs, or their `searches`. Returns the number of
  // symbols; 0 if they are too many.
  uint32_t begin_word(const Word& part, MergingWord& word, PairSearches& searches) const {
    if (begin_ascii(part, word.symbols(), word.priorities())) return part.n;
    const Rules rules{*this, false};
    const uint32_t count = begin_symbols(rules, part.p, part.n, MergingWord::kSymbols, word.symbols());
    if (count > MergingWord::kSymbols) return 0;
    searches.add(word, count);
    return count;
  }

  // ASCII fast path of `begin_merging`. Returns false if the word is not ASCII, or too long.
  bool begin_ascii(const Word& word, uint32_t* ids, uint32_t* priorities) const {
    const uint8_t *p = word.p, *const last = p + word.n - 1;
    if ((*p | *last) >= 0x80 || word.n > MergingWord::kSymbols) return false;
    uint8_t all = 0;
    for (; p < last; p++) {
      all |= *p;
      *ids++ = byte_ids_[*p];
      *priorities++ = ascii_pairs_[(p[0] & 0x7Fu) << 7 | (p[1] & 0x7Fu)];
    }
    *ids = byte_ids_[*p];
    return all < 0x80;
  }

  void merge_short(const uint8_t* p, size_t bytes, bool guarded, IdBuffer& out) const {
    uint32_t ids[kShort], priorities[kShort];
    const Rules rules{*this, guarded};
    uint32_t n = begin_merging(rules, p, static_cast<uint32_t>(bytes), kShort, ids, priorities);
    n = tokenweir::merge_short(rules, ids, priorities, n);
    for (uint32_t i = 0; i < n; i++) out.push(ids[i]);
  }

  void merge_long(const uint8_t* p, size_t n, bool guarded, ModelScratch& s, IdBuffer& out) const {
    s.ids.resize(n);
    for (size_t i = 0; i < n; i++) s.ids[i] = byte_ids_[p[i]];
    Rules rules{*this, guarded};
    tokenweir::merge_long(rules, s, n);
    for (const auto& [id, end] : s.merged) out.push(id);
  }

  TokenList tokens_;
  bool ignore_merges_ = false;
  std::shared_ptr<const TokenTable> table_;
  uint32_t byte_ids_[256];  // kNone for bytes without a token, which UTF-8 does not contain
  PairTable pairs_;
  SharedArray<uint32_t> merged_;       // priority -> id
  SharedArray<OmittedMerge> omitted_;  // of a list of merges
  PremergedChars characters_;
  SharedArray<uint32_t> ascii_pairs_;  // the priority of two ASCII characters; small enough to stay in the cache
  std::unique_ptr<WordTable> words_;
  std::unique_ptr<ByteCuts> byte_cuts_;
};

}  // namespace tokenweir
