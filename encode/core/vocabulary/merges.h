// A merge list as text: pairs of tokens in order of priority, contiguous in memory. A list that can be restored from a
// model's tables is lazy: it is built at first use.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "base/json_text.h"
#include "base/quote.h"
#include "memory/shared_array.h"

namespace tokenweir {

class Merges {
 public:
  struct Pair {
    std::string_view left, right;

    // The joined text; both are contiguous.
    std::string_view joined() const { return {left.data(), left.size() + right.size()}; }
  };

  class Builder;

  Merges() = default;

  // Makes a lazy list, which calls `make` at first use.
  static Merges lazy(std::function<Merges()> make) {
    Merges merges;
    merges.lazy_ = std::make_shared<Lazy>();
    merges.lazy_->make = std::move(make);
    return merges;
  }

  // Parses a tokenizer.json's list of "left right" or ["left", "right"]; returns nullopt for anything else.
  static std::optional<Merges> from_json(std::string_view json);

  size_t size() const { return lists().ends.size(); }

  Pair operator[](size_t i) const {
    const auto& [all, ends] = lists();
    const size_t begin = i == 0 ? 0 : ends[i - 1].right;
    const std::string_view text(all.data(), all.size());
    return {text.substr(begin, ends[i].left - begin), text.substr(ends[i].left, ends[i].right - ends[i].left)};
  }

  template <class Visit>
  void fields(Visit& visit) {
    visit(lists_.text, lists_.ends);
  }

 private:
  struct Ends {
    uint32_t left, right;
  };

  struct Lists {
    SharedArray<char> text;
    SharedArray<Ends> ends;  // the ends in `text` of each pair's tokens
  };

  struct Lazy {
    std::once_flag once;
    std::function<Merges()> make;
    Lists lists;
  };

  const Lists& lists() const {
    if (!lazy_) return lists_;
    std::call_once(lazy_->once, [this] { lazy_->lists = std::exchange(lazy_->make, nullptr)().lists_; });
    return lazy_->lists;
  }

  Lists lists_;
  std::shared_ptr<Lazy> lazy_;
};

class Merges::Builder {
 public:
  // Adds "left right". Skips `#version` comment lines.
  void add(std::string_view merge) {
    if (is_version(merge)) return;
    const size_t space = only_space(merge);
    if (space == std::string_view::npos)
      throw FileError("merge " + std::to_string(size()) + " (" + quoted(merge) +
                      ") is not two tokens with a space between");
    add(merge.substr(0, space), merge.substr(space + 1));
  }

  void add(std::string_view left, std::string_view right) {
    text_ += left;
    const size_t middle = text_.size();
    text_ += right;
    end_pair(middle);
  }

  // Adds all merges of a JSON list; returns false if it contains anything else.
  bool read_all(std::string_view json) {
    text_.reserve(json.size());
    JsonText text(json);
    if (!text.take('[')) return false;
    if (text.take(']')) return text.ended();
    do
      if (!read(text)) return false;
    while (text.take(','));
    return text.take(']') && text.ended();
  }

  size_t size() const { return ends_.size(); }

  Merges build() && {
    Merges merges;
    text_.shrink_to_fit();
    const auto text = std::make_shared<std::string>(std::move(text_));
    merges.lists_ = {SharedArray<char>(text->data(), text->size(), text), std::move(ends_)};
    return merges;
  }

 private:
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
  std::vector<Ends> ends_;
};

inline std::optional<Merges> Merges::from_json(std::string_view json) {
  Builder builder;
  return builder.read_all(json) ? std::optional(std::move(builder).build()) : std::nullopt;
}

}  // namespace tokenweir
