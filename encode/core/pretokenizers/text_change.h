// Stages that change text, as HuggingFace's `tokenizers` 0.23 does: a prefix and another sign for the space (ByteLevel,
// Metaspace), and GPT-2's byte alphabet (ByteLevel).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "pretokenizers/frame.h"
#include "base/utf8.h"
#include "vocabulary/vocabulary.h"

namespace tokenweir {

class TextChange : public PreTokenizerStage {
 public:
  // Whether [p, end) certainly stays as it is; `first`: it stands at the beginning of the original.
  virtual bool keeps(const uint8_t* p, const uint8_t* end, bool first) const = 0;

  // Whether the answer depends on `first`.
  virtual bool looks_at_beginning() const { return false; }

  // At most how many bytes [p, end) becomes.
  virtual size_t room(const uint8_t* p, const uint8_t* end) const = 0;

  // Appends what becomes of [p, end), a part of `frame` that is not empty.
  virtual void apply(const uint8_t* p, const uint8_t* end, const Frame& frame, bool spans, ChangedText& out) const = 0;

 protected:
  // Appends [p, end) as it is.
  static void copy(const uint8_t* p, const uint8_t* end, const Frame& frame, bool spans, ChangedText& out) {
    const uint8_t* const first_end = std::clamp(frame.first_end, p, end);
    if (p < first_end) out.put(reinterpret_cast<const char*>(p), static_cast<size_t>(first_end - p), true);
    if (first_end < end) out.put(reinterpret_cast<const char*>(first_end), static_cast<size_t>(end - first_end), false);
    for (uint32_t length; spans && p < end; p += length) {
      length = utf8_length(*p);
      out.put_origin(length, frame.original(p, p + length));
    }
  }
};

enum class Prefix : uint8_t { kAlways, kFirst, kNever };  // before each piece, before the text's first one, before none

// Writes `sign` for each space, and then one before a piece that does not begin with it.
class Spaces : public TextChange {
 public:
  Spaces(std::string sign, Prefix prefix) : sign_(std::move(sign)), prefix_(prefix) {}

  bool keeps(const uint8_t* p, const uint8_t* end, bool first) const override {
    return !prefixed(p, end, first) && (sign_ == " " || !std::memchr(p, ' ', static_cast<size_t>(end - p)));
  }

  bool looks_at_beginning() const override { return prefix_ == Prefix::kFirst; }

  size_t room(const uint8_t* p, const uint8_t* end) const override {
    const size_t spaces = static_cast<size_t>(std::count(p, end, static_cast<uint8_t>(' ')));
    return static_cast<size_t>(end - p) + (spaces + 1) * sign_.size();
  }

  void apply(const uint8_t* p, const uint8_t* end, const Frame& frame, bool spans, ChangedText& out) const override {
    if (prefixed(p, end, p < frame.first_end)) {
      out.put(sign_.data(), sign_.size(), p < frame.first_end);
      if (spans) out.put_origin(sign_.size(), frame.original(p, p + utf8_length(*p)));
    }
    while (p < end) {
      const uint8_t* space = static_cast<const uint8_t*>(std::memchr(p, ' ', static_cast<size_t>(end - p)));
      if (!space) space = end;
      copy(p, space, frame, spans, out);
      if (space < end) {
        out.put(sign_.data(), sign_.size(), space < frame.first_end);
        if (spans) out.put_origin(sign_.size(), frame.original(space, space + 1));
        space++;
      }
      p = space;
    }
  }

 private:
  std::string sign_;
  Prefix prefix_;

  bool prefixed(const uint8_t* p, const uint8_t* end, bool first) const {
    if (prefix_ == Prefix::kNever || (prefix_ == Prefix::kFirst && !first)) return false;
    return *p != ' ' && (static_cast<size_t>(end - p) < sign_.size() || std::memcmp(p, sign_.data(), sign_.size()) != 0);
  }

};

// Spells each byte as a character of the byte alphabet.
class Spell : public TextChange {
 public:
  Spell() {
    const ByteAlphabet alphabet;
    for (uint32_t byte = 0; byte < 256; byte++) letters_[byte] = alphabet.letter(static_cast<uint8_t>(byte));
  }

  bool keeps(const uint8_t* p, const uint8_t* end, bool) const override { return std::all_of(p, end, is_its_letter); }

  size_t room(const uint8_t* p, const uint8_t* end) const override { return 2 * static_cast<size_t>(end - p); }

  void apply(const uint8_t* p, const uint8_t* end, const Frame& frame, bool spans, ChangedText& out) const override {
    for (const uint8_t* next; p < end; p = next) {
      next = std::find_if_not(p, end, is_its_letter);
      copy(p, next, frame, spans, out);
      if (next == end) return;
      p = next;
      next += utf8_length(*p);
      char letters[8];
      size_t n = 0;
      for (const uint8_t* byte = p; byte < next; byte++)
        for (const char part : letters_[*byte]) letters[n++] = part;
      out.put(letters, n, p < frame.first_end);
      if (spans) out.put_origin(n, frame.original(p, next));
    }
  }

 private:
  static bool is_its_letter(uint8_t byte) { return byte > 0x20 && byte < 0x7F; }

  std::array<std::string, 256> letters_;
};

// Takes spelled text back to bytes, which are no longer UTF-8: for a model that knows the alphabet by itself.
class Unspell : public TextChange {
 public:
  bool keeps(const uint8_t* p, const uint8_t* end, bool) const override { return std::all_of(p, end, is_ascii); }

  size_t room(const uint8_t* p, const uint8_t* end) const override { return static_cast<size_t>(end - p); }

  void apply(const uint8_t* p, const uint8_t* end, const Frame& frame, bool spans, ChangedText& out) const override {
    while (p < end) {
      const uint8_t* const letter = std::find_if_not(p, end, is_ascii);
      copy(p, letter, frame, spans, out);
      if (letter == end) return;
      uint32_t length;
      p = letter;
      const char byte = static_cast<char>(alphabet_.byte(utf8_decode(p, length)));
      out.put(&byte, 1, p < frame.first_end);
      if (spans) out.put_origin(1, frame.original(p, p + length));
      p += length;
    }
  }

 private:
  static bool is_ascii(uint8_t byte) { return byte < 0x80; }

  ByteAlphabet alphabet_;
};

}  // namespace tokenweir
