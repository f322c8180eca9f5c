// A tokenizer.json's list of merges, tokens to ids, as HuggingFace's `tokenizers` 0.23 reads it.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "errors.h"
#include "hash_table.h"
#include "quote.h"
#include "vocabulary.h"

namespace tokenweir {

class MergeReader {
 public:
  // `prefix`: bytes that the right token of a pair loses (those of continuing_subword_prefix, whatever it begins with).
  explicit MergeReader(const Vocabulary& vocabulary, size_t prefix = 0)
      : prefix_(prefix), names_(vocabulary.names), table_(names_) {
    for (uint32_t id = 0; id < vocabulary.names.size(); id++)
      if (!vocabulary.names[id].empty()) table_.insert(id);
  }

  // "left right"; a line that begins as the first one of GPT-2's merges.txt is none
  void add(std::string_view merge) {
    if (merge.substr(0, 8) == "#version") return;
    const size_t space = merge.find(' ');
    if (space == std::string_view::npos || merge.find(' ', space + 1) != std::string_view::npos)
      throw FileError("merge " + std::to_string(size()) + " (" + quoted(merge) +
                      ") is not two tokens with a space between");
    add(merge.substr(0, space), merge.substr(space + 1));
  }

  void add(std::string_view left, std::string_view right) {
    if (right.size() < prefix_)
      throw FileError("merge " + std::to_string(size()) + " continues with " + quoted(right) +
                      ", which is shorter than the continuing_subword_prefix");
    joined_.assign(left).append(right.substr(prefix_));
    const uint32_t left_id = find(left), right_id = find(right);
    merges_.push_back({left_id, right_id, find(joined_)});
  }

  size_t size() const { return merges_.size(); }
  const std::vector<std::array<uint32_t, 3>>& merges() const { return merges_; }

 private:
  uint32_t find(std::string_view token) const {
    const uint32_t id = table_.find(token);
    if (id == kNone)
      throw FileError("merge " + std::to_string(size()) + " needs the token " + quoted(token) +
                      ", which the vocabulary lacks");
    return id;
  }

  size_t prefix_;
  TokenList names_;
  TokenTable table_;
  std::string joined_;
  std::vector<std::array<uint32_t, 3>> merges_;
};

}  // namespace tokenweir
