// A list of merges as text: pairs of tokens in order of priority, one after the other in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "base/quote.h"
#include "base/json_text.h"

namespace tokenweir {

class Merges {
 public:
  struct Pair {
    std::string_view left, right;

    // Both, which stand together.
    std::string_view joined() const { return {left.data(), left.size() + right.size()}; }
  };

  // A tokenizer.json's list of "left right" or ["left", "right"]; nothing if anything else is in it.
  static std::optional<Merges> from_json(std::string_view json) {
    Merges merges;
    merges.text_.reserve(json.size());
    JsonText text(json);
    if (!text.take('[')) return {};
    if (text.take(']')) return text.ended() ? std::optional(std::move(merges)) : std::nullopt;
    do
      if (!merges.read(text)) return {};
    while (text.take(','));
    if (!text.take(']') || !text.ended()) return {};
    merges.text_.shrink_to_fit();
    return merges;
  }

  // "left right"; a line that begins as the first one of GPT-2's merges.txt is none
  void add(std::string_view merge) {
    if (is_version(merge)) return;
    const size_t space = only_space(merge);
    if (space == std::string_view::npos)
      throw FileError("merge " + std::to_string(size()) + " (" + quoted(merge) + ") is not two tokens with a space between");
    add(merge.substr(0, space), merge.substr(space + 1));
  }

  void add(std::string_view left, std::string_view right) {
    text_ += left;
    const size_t middle = text_.size();
    text_ += right;
    end_pair(middle);
  }

  size_t size() const { return ends_.size(); }

  Pair operator[](size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1].right;
    const std::string_view text = text_;
    return {text.substr(begin, ends_[i].left - begin), text.substr(ends_[i].left, ends_[i].right - ends_[i].left)};
  }

 private:
  struct Ends {
    uint32_t left, right;
  };

  static bool is_version(std::string_view merge) { return merge.substr(0, 8) == "#version"; }

  static size_t only_space(std::string_view merge) {
    const size_t space = merge.find(' ');
    const bool more = space != std::string_view::npos && merge.find(' ', space + 1) != std::string_view::npos;
    return more ? std::string_view::npos : space;
  }

  bool read(JsonText& text) {
    const size_t begin = text_.size();
    if (text.take('[')) {
      if (!text.string(text_)) return false;
      const size_t middle = text_.size();
      if (!text.take(',') || !text.string(text_) || !text.take(']')) return false;
      end_pair(middle);
      return true;
    }
    if (!text.string(text_)) return false;
    const std::string_view merge = std::string_view(text_).substr(begin);
    if (is_version(merge)) {
      text_.resize(begin);
      return true;
    }
    const size_t space = only_space(merge);
    if (space == std::string_view::npos) return false;
    text_.erase(begin + space, 1);
    end_pair(begin + space);
    return true;
  }

  void end_pair(size_t middle) {
    if (text_.size() > UINT32_MAX) throw Unsupported("merges of 4 GiB or more");
    ends_.push_back({static_cast<uint32_t>(middle), static_cast<uint32_t>(text_.size())});
  }

  std::string text_;
  std::vector<Ends> ends_;  // in `text_`, of each pair's tokens
};

}  // namespace tokenweir
