// Stages that change text, as HuggingFace's `tokenizers` 0.23 does: a prefix and a replacement of spaces (ByteLevel,
// Metaspace), and GPT-2's byte alphabet (ByteLevel).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/utf8.h"
#include "pretokenizers/aligned_text.h"
#include "vocabulary/vocabulary.h"

namespace tokenweir {

class TextChange : public PreTokenizerStage {
 public:
  // Whether [p, end) is known to stay unchanged. `first`: it is aligned to the original's start.
  virtual bool is_unchanged(const uint8_t* p, const uint8_t* end, bool first) const = 0;

  // Whether `is_unchanged` depends on `first`.
  virtual bool depends_on_start() const { return false; }

  // An upper bound for the bytes that [p, end) becomes.
  virtual size_t max_bytes(const uint8_t* p, const uint8_t* end) const = 0;

  // Appends the changed form of [p, end), a nonempty part of `source`.
  virtual void apply(const uint8_t* p, const uint8_t* end, const AlignedText& source, bool spans,
                     ScratchText& out) const = 0;

 protected:
  // Appends [p, end) unchanged.
  static void copy(const uint8_t* p, const uint8_t* end, const AlignedText& source, bool spans, ScratchText& out) {
    const uint8_t* const first_end = std::clamp(source.first_end, p, end);
    if (p < first_end) out.put(reinterpret_cast<const char*>(p), static_cast<size_t>(first_end - p), true);
    if (first_end < end) out.put(reinterpret_cast<const char*>(first_end), static_cast<size_t>(end - first_end), false);
    for (uint32_t length; spans && p < end; p += length) {
      length = utf8_length(*p);
      out.put_origin(length, source.original(p, p + length));
    }
  }
};

enum class Prefix : uint8_t { kAlways, kFirst, kNever };  // before each piece; before the first of the text; never

// Replaces each space by `sign`, and puts one before a piece that does not begin with it.
class Spaces : public TextChange {
 public:
  Spaces(std::string sign, Prefix prefix) : sign_(std::move(sign)), prefix_(prefix) {}

  bool is_unchanged(const uint8_t* p, const uint8_t* end, bool first) const override {
    return !prefixed(p, end, first) && (sign_ == " " || !std::memchr(p, ' ', static_cast<size_t>(end - p)));
  }

  bool depends_on_start() const override { return prefix_ == Prefix::kFirst; }

  size_t max_bytes(const uint8_t* p, const uint8_t* end) const override {
    const size_t spaces = static_cast<size_t>(std::count(p, end, static_cast<uint8_t>(' ')));
    return static_cast<size_t>(end - p) + (spaces + 1) * sign_.size();
  }

  void apply(const uint8_t* p, const uint8_t* end, const AlignedText& source, bool spans,
             ScratchText& out) const override {
    if (prefixed(p, end, p < source.first_end)) {
      out.put(sign_.data(), sign_.size(), p < source.first_end);
      if (spans) out.put_origin(sign_.size(), source.original(p, p + utf8_length(*p)));
    }
    while (p < end) {
      const uint8_t* space = static_cast<const uint8_t*>(std::memchr(p, ' ', static_cast<size_t>(end - p)));
      if (!space) space = end;
      copy(p, space, source, spans, out);
      if (space < end) {
        out.put(sign_.data(), sign_.size(), space < source.first_end);
        if (spans) out.put_origin(sign_.size(), source.original(space, space + 1));
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
    return *p != ' ' &&
           (static_cast<size_t>(end - p) < sign_.size() || std::memcmp(p, sign_.data(), sign_.size()) != 0);
  }
};

// Writes each byte as a character of the byte alphabet.
class Spell : public TextChange {
 public:
  Spell() {
    const ByteAlphabet alphabet;
    for (uint32_t byte = 0; byte < 256; byte++) letters_[byte] = alphabet.letter(static_cast<uint8_t>(byte));
  }

  bool is_unchanged(const uint8_t* p, const uint8_t* end, bool) const override {
    return std::all_of(p, end, is_its_letter);
  }

  size_t max_bytes(const uint8_t* p, const uint8_t* end) const override { return 2 * static_cast<size_t>(end - p); }

  void apply(const uint8_t* p, const uint8_t* end, const AlignedText& source, bool spans,
             ScratchText& out) const override {
    for (const uint8_t* next; p < end; p = next) {
      next = std::find_if_not(p, end, is_its_letter);
      copy(p, next, source, spans, out);
      if (next == end) return;
      p = next;
      next += utf8_length(*p);
      char letters[8];
      size_t n = 0;
      for (const uint8_t* byte = p; byte < next; byte++)
        for (const char part : letters_[*byte]) letters[n++] = part;
      out.put(letters, n, p < source.first_end);
      if (spans) out.put_origin(n, source.original(p, next));
    }
  }

 private:
  static bool is_its_letter(uint8_t byte) { return byte > 0x20 && byte < 0x7F; }

  std::array<std::string, 256> letters_;
};

// Converts text in the byte alphabet back to bytes, which need not be UTF-8; for a model that applies the alphabet
// itself.
class Unspell : public TextChange {
 public:
  bool is_unchanged(const uint8_t* p, const uint8_t* end, bool) const override { return std::all_of(p, end, is_ascii); }

  size_t max_bytes(const uint8_t* p, const uint8_t* end) const override { return static_cast<size_t>(end - p); }

  void apply(const uint8_t* p, const uint8_t* end, const AlignedText& source, bool spans,
             ScratchText& out) const override {
    while (p < end) {
      const uint8_t* const letter = std::find_if_not(p, end, is_ascii);
      copy(p, letter, source, spans, out);
      if (letter == end) return;
      uint32_t length;
      p = letter;
      const char byte = static_cast<char>(alphabet_.byte(utf8_decode(p, length)));
      out.put(&byte, 1, p < source.first_end);
      if (spans) out.put_origin(1, source.original(p, p + length));
      p += length;
    }
  }

 private:
  static bool is_ascii(uint8_t byte) { return byte < 0x80; }

  ByteAlphabet alphabet_;
};

}  // namespace tokenweir
