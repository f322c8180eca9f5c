// White space at the start of a block of text, which waits for the first other character.
//
// A block is the text between two pieces of markup, or from the start of the answer. If a block has white space only,
// the space belongs to the markup and is removed. An answer without markup keeps it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/saving.h"
#include "base/utf8.h"

namespace tokenweir {

class LeadingSpace {
 public:
  // `holds`: white space is held; otherwise all text passes.
  explicit LeadingSpace(bool holds) : starts_(holds), holds_(holds) {}

  // Whether the block has had no text other than white space.
  bool at_start() const { return starts_; }
  const std::string& held() const { return held_; }

  // Begins a block behind markup. The caller has removed the held text.
  void begin_block() {
    starts_ = holds_;
    after_markup_ = true;
    held_.clear();
  }

  // Takes text of the block. Returns false if all of it is held; otherwise `text` begins with what was held before.
  bool take(std::string& text) {
    if (!starts_) {
      if (!held_.empty()) text.insert(0, std::exchange(held_, {}));
      return true;
    }
    held_ += text;
    if (is_blank(text)) return false;
    starts_ = false;
    text = std::exchange(held_, {});
    return true;
  }

  // Lets the held text pass with the next text, though no other character has come. `anywhere`: behind markup, too.
  // Returns whether the caller has to remove it, because it stands behind markup.
  bool end_block(bool anywhere) {
    if (!anywhere && after_markup_) return true;
    starts_ = false;
    return false;
  }

  void save(Saver& to) const {
    to.number(starts_);
    to.number(after_markup_);
    to.text(held_);
  }

  void load(Loader& from) {
    starts_ = from.flag();
    after_markup_ = from.flag();
    held_ = from.text();
    check_state(holds_ || !starts_, "white space is held where none may be");
    check_state(starts_ || held_.empty(), "white space is held behind other text");
    check_state(is_blank(held_), "other text than white space is held");
  }

 private:
  static bool is_blank(std::string_view text) {
    const auto* at = reinterpret_cast<const uint8_t*>(text.data());
    for (const uint8_t* end = at + text.size(); at < end;) {
      uint32_t length = utf8_length(*at);
      if (at + length > end || !is_white_space(utf8_decode(at, length))) return false;
      at += length;
    }
    return true;
  }

  std::string held_;
  bool starts_;
  bool after_markup_ = false;
  bool holds_;
};

}  // namespace tokenweir
