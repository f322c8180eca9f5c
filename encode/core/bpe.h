// Byte-pair encoding of one piece.
//
// The same merge loop serves HuggingFace's merge lists and tiktoken's ranks: a pair has a priority, a priority has a
// result. A merge list gives each pair a priority of its own; ranks give every split of a token the token's rank.
// The pair of lowest priority merges first, the leftmost of equals, until no pair is left. That is O(n log n) for long
// pieces (a heap) and quadratic with a tiny constant below kShort symbols, where shifting arrays beats a heap.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hash_table.h"
#include "id_buffer.h"
#include "model.h"
#include "vocabulary.h"
#include "whole_characters.h"

namespace tokenweir {

class Bpe : public Model {
 public:
  // `whole_first`: a piece that is a token is taken whole, whatever the merges say.
  Bpe(const Vocabulary& vocabulary, bool whole_first)
      : tokens_(vocabulary.bytes), whole_first_(whole_first), table_(tokens_) {
    std::fill(std::begin(byte_ids_), std::end(byte_ids_), kNone);
    for (uint32_t id = 0; id < tokens_.size(); id++) {
      const std::string_view token = tokens_[id];
      if (!vocabulary.reachable[id]) continue;
      table_.insert(id);
      if (token.size() == 1) byte_ids_[static_cast<uint8_t>(token[0])] = id;
    }
    for (int byte = 0; byte < 256; byte++)
      if (byte_ids_[byte] == kNone)
        throw Unsupported("a byte-level vocabulary without a token for byte " + std::to_string(byte));
  }

  // HuggingFace: (left, right, merged) in order of priority; a pair listed twice keeps its later place.
  void set_merges(const std::vector<std::array<uint32_t, 3>>& merges) {
    check_priority(merges.size());
    pairs_ = std::make_unique<PairTable>(merges.size());
    for (uint32_t priority = 0; priority < merges.size(); priority++) {
      const auto [left, right, merged] = merges[priority];
      pairs_->insert(left, right, priority);
      merged_.push_back(merged);
    }
    index_pairs();
  }

  // tiktoken: every split of a token into two tokens merges with the token's rank, which is its id.
  void set_ranks() {
    check_priority(tokens_.size());
    std::vector<std::array<uint32_t, 3>> splits;
    for (uint32_t id = 0; id < tokens_.size(); id++) {
      const std::string_view token = tokens_[id];
      if (token.size() > kMaxRanked)
        throw Unsupported("a ranked token of " + std::to_string(token.size()) + " bytes; at most " +
                          std::to_string(kMaxRanked) + " are possible");
      merged_.push_back(id);
      for (size_t cut = 1; cut < token.size(); cut++) {
        const uint32_t left = table_.find(token.substr(0, cut));
        if (left == kNone) continue;
        const uint32_t right = table_.find(token.substr(cut));
        if (right != kNone) splits.push_back({left, right, id});
      }
    }
    pairs_ = std::make_unique<PairTable>(splits.size());
    for (const auto& [left, right, id] : splits) pairs_->insert(left, right, id);
    index_pairs();
  }

  // Control tokens that text could otherwise reach; `encode` with `guarded` never yields them.
  void set_control(const std::vector<uint32_t>& ids) {
    control_.assign(tokens_.size(), false);
    for (uint32_t id : ids)
      if (id < tokens_.size() && !tokens_[id].empty()) control_[id] = guards_ = true;
  }

  bool guards() const override { return guards_; }

  void encode(const uint8_t* p, size_t n, bool guarded, ModelScratch& scratch, IdBuffer& out,
              std::vector<Span>* spans) const override {
    const size_t first = out.size();
    merge(p, n, guarded, scratch, out);
    size_t at = 0;
    for (size_t i = first; spans && i < out.size(); i++) {  // the ids of a piece are its bytes, cut
      const size_t end = at + tokens_[static_cast<size_t>(out.data()[i])].size();
      spans->push_back({at, end});
      at = end;
    }
  }

 private:
  static constexpr size_t kShort = 64;
  static constexpr size_t kMaxRanked = 4096;  // the splits of a token take time in the square of its length

  void merge(const uint8_t* p, size_t n, bool guarded, ModelScratch& scratch, IdBuffer& out) const {
    if (whole_first_ || n == 1) {
      const uint32_t id = n == 1 ? byte_ids_[*p] : table_.find({reinterpret_cast<const char*>(p), n});
      if (id != kNone && !(guarded && control_[id])) {
        out.push(id);
        return;
      }
    }
    if (n <= kShort)
      merge_short(p, n, guarded, out);
    else
      merge_long(p, n, guarded, scratch, out);
  }

  static void check_priority(size_t merges) {
    if (merges > PairTable::kMaxPriority)
      throw Unsupported(std::to_string(merges) + " merges; at most " + std::to_string(PairTable::kMaxPriority) + " fit");
  }

  // What both kinds of merges are followed by.
  void index_pairs() {
    characters_ = WholeCharacters(*pairs_, merged_, byte_ids_, tokens_);
    for (uint32_t a = 0; a < 128; a++)
      for (uint32_t b = 0; b < 128; b++) ascii_pairs_.push_back(pairs_->find(byte_ids_[a], byte_ids_[b]));
  }

  uint32_t priority(uint32_t left, uint32_t right, bool guarded) const {
    const uint32_t found = pairs_->find(left, right);
    return guarded && found != kNone && control_[merged_[found]] ? kNone : found;
  }

  void merge_short(const uint8_t* p, size_t bytes, bool guarded, IdBuffer& out) const {
    uint32_t ids[kShort], priorities[kShort];
    size_t n = 0;
    for (size_t i = 0; i < bytes; n++) {
      const uint32_t whole = guarded ? kNone : characters_.token(p, i, bytes);
      ids[n] = whole == kNone ? byte_ids_[p[i]] : whole;
      i += whole == kNone ? 1 : utf8_length(p[i]);
    }
    const bool plain = n == bytes && !guarded;
    for (size_t i = 0; i + 1 < n; i++)
      priorities[i] = plain && (p[i] | p[i + 1]) < 0x80 ? ascii_pairs_[p[i] << 7 | p[i + 1]]
                                                        : priority(ids[i], ids[i + 1], guarded);
    while (n > 1) {
      uint32_t best = kNone;
      for (size_t i = 0; i + 1 < n; i++) best = std::min(best, priorities[i]);
      if (best == kNone) break;
      size_t i = 0;
      while (priorities[i] != best) i++;
      ids[i] = merged_[best];
      n--;
      std::copy(ids + i + 2, ids + n + 1, ids + i + 1);
      if (i + 1 < n) {
        std::copy(priorities + i + 2, priorities + n, priorities + i + 1);
        priorities[i] = priority(ids[i], ids[i + 1], guarded);
      }
      if (i > 0) priorities[i - 1] = priority(ids[i - 1], ids[i], guarded);
    }
    for (size_t i = 0; i < n; i++) out.push(ids[i]);
  }

  void merge_long(const uint8_t* p, size_t n, bool guarded, ModelScratch& s, IdBuffer& out) const {
    if (n >= kNone) throw Unsupported("a piece of 4 GiB or more without a boundary");
    const uint32_t end = static_cast<uint32_t>(n);
    s.ids.resize(n), s.priorities.resize(n), s.next.resize(n), s.previous.resize(n);
    s.heap.clear();
    for (uint32_t i = 0; i < end; i++) {
      s.ids[i] = byte_ids_[p[i]];
      s.next[i] = i + 1;
      s.previous[i] = i - 1;  // wraps to kNone for the first
      s.priorities[i] = i + 1 < end ? priority(byte_ids_[p[i]], byte_ids_[p[i + 1]], guarded) : kNone;
      if (s.priorities[i] != kNone) s.heap.push_back(uint64_t{s.priorities[i]} << 32 | i);
    }
    // An entry is stale when its symbol was swallowed or its pair has changed; then the priorities differ, since equal
    // priorities mean an equal result.
    std::make_heap(s.heap.begin(), s.heap.end(), std::greater<>());
    const auto renew = [&](uint32_t i) {
      const uint32_t right = s.next[i];
      s.priorities[i] = right < end ? priority(s.ids[i], s.ids[right], guarded) : kNone;
      if (s.priorities[i] != kNone) {
        s.heap.push_back(uint64_t{s.priorities[i]} << 32 | i);
        std::push_heap(s.heap.begin(), s.heap.end(), std::greater<>());
      }
    };
    while (!s.heap.empty()) {
      std::pop_heap(s.heap.begin(), s.heap.end(), std::greater<>());
      const uint32_t best = s.heap.back() >> 32, i = static_cast<uint32_t>(s.heap.back());
      s.heap.pop_back();
      if (s.priorities[i] != best) continue;
      const uint32_t gone = s.next[i];
      s.ids[i] = merged_[best];
      s.priorities[gone] = kNone;
      s.next[i] = s.next[gone];
      if (s.next[i] < end) s.previous[s.next[i]] = i;
      renew(i);
      if (s.previous[i] != kNone) renew(s.previous[i]);
    }
    for (uint32_t i = 0; i < end; i = s.next[i]) out.push(s.ids[i]);
  }

  TokenList tokens_;
  bool whole_first_;
  TokenTable table_;
  uint32_t byte_ids_[256];
  std::unique_ptr<PairTable> pairs_;
  std::vector<uint32_t> merged_;  // priority -> id
  WholeCharacters characters_;
  std::vector<uint32_t> ascii_pairs_;  // by two ASCII characters: their priority; small enough to stay near
  std::vector<bool> control_;
  bool guards_ = false;
};

}  // namespace tokenweir
