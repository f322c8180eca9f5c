// Tokens and their ids, as a file lists them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "base/json_text.h"
#include "vocabulary/hash_table.h"
#include "vocabulary/rank_file.h"
#include "vocabulary/token_list.h"

namespace tokenweir {

// Copies share their memory.
class TokenIds {
 public:
  using Named = std::vector<std::pair<std::string_view, int64_t>>;

  // Takes tokens in any order. An id must not occur twice; of equal names the first id wins.
  explicit TokenIds(const Named& tokens) {
    std::vector<std::string_view> by_id;
    for (const auto& [name, id] : tokens) {
      if (id < 0 || id > PairTable::kMaxId)
        throw Unsupported("token id " + std::to_string(id) + "; ids from 0 to " + std::to_string(PairTable::kMaxId) +
                          " fit");
      const size_t at = static_cast<size_t>(id);
      if (at >= by_id.size()) {
        by_id.resize(at + 1);
        given_.resize(at + 1);
      }
      if (given_[at]) throw FileError("token id " + std::to_string(id) + " is given twice");
      by_id[at] = name;
      given_[at] = true;
    }
    names_ = TokenList(by_id);
    index();
  }

  // Parses a tokenizer.json's vocabulary; returns nullopt unless it is an object of distinct names and integers.
  static std::optional<TokenIds> from_json(std::string_view json) {
    JsonText text(json);
    TokenList::Builder builder(0);
    builder.bytes().reserve(json.size());
    std::vector<int64_t> ids;
    if (!text.take('{')) return {};
    do {
      int64_t id;
      if (!text.string(builder.bytes()) || !text.take(':') || !text.integer(id)) return {};
      builder.end_token();
      ids.push_back(id);
    } while (text.take(','));
    if (!text.take('}') || !text.ended()) return {};
    return from_unique(std::move(builder), ids);
  }

  // Parses a rank file; returns nullopt if it is not written as all known files are, or a token or rank occurs twice.
  static std::optional<TokenIds> from_ranks(std::string_view data) {
    RankFile file(data);
    TokenList::Builder builder(data.size() / 16);
    builder.bytes().reserve(data.size() * 3 / 4);
    std::vector<int64_t> ids;
    ids.reserve(data.size() / 16);
    std::vector<bool> seen;
    for (int64_t rank; !file.ended(); ids.push_back(rank)) {
      if (!file.line(builder.bytes(), rank) || rank > PairTable::kMaxId) return {};
      builder.end_token();
      const size_t at = static_cast<size_t>(rank);
      if (at >= seen.size()) seen.resize(std::max(at + 1, 2 * seen.size()));
      if (seen[at]) return {};
      seen[at] = true;
    }
    if (ids.empty()) return {};
    return from_unique(std::move(builder), ids);
  }

  // Returns the id of a token, or kNone.
  uint32_t find(std::string_view name) const { return table_->find(name); }

  const TokenList& names() const { return names_; }                          // empty for ids without a token
  const std::vector<bool>& given() const { return given_; }                  // whether an id has a token
  const std::shared_ptr<const TokenTable>& table() const { return table_; }  // of the given names

  TokenIds() = default;

  template <class Visit>
  void fields(Visit& visit) {
    visit(names_, given_, table_, unique_);
  }

 private:
  // Makes a vocabulary of tokens with an id each; returns nullopt if two tokens are equal.
  static std::optional<TokenIds> from_unique(TokenList::Builder&& builder, const std::vector<int64_t>& ids) {
    const TokenList names(std::move(builder));
    TokenIds made;
    size_t in_order = 0;
    while (in_order < ids.size() && ids[in_order] == static_cast<int64_t>(in_order)) in_order++;
    if (in_order == ids.size()) {
      if (names.size() > PairTable::kMaxId) return {};
      made.names_ = names;
      made.given_.assign(names.size(), true);
      made.index();
    } else {
      Named tokens;
      tokens.reserve(ids.size());
      for (size_t i = 0; i < ids.size(); i++) tokens.emplace_back(names[i], ids[i]);
      made = TokenIds(tokens);
    }
    return made.unique_ ? std::optional(std::move(made)) : std::nullopt;
  }

  void index() {
    auto table = std::make_shared<TokenTable>(names_);
    for (uint32_t id = 0; id < names_.size(); id++)
      if (given_[id]) unique_ &= table->insert(id);
    table_ = std::move(table);
  }

  TokenList names_;
  std::vector<bool> given_;
  std::shared_ptr<const TokenTable> table_;
  bool unique_ = true;  // no two names are equal
};

}  // namespace tokenweir
