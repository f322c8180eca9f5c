// Ids to what they stand for: text, or bytes that are text only together with their neighbours'.
//
// A decoder takes tokens as they are spelled through steps, most of which concern each token by itself; what these make
// of every token is worked out once. What is left for the stream (decode_stream.h) are runs of bytes and the steps that
// see the whole text. Some steps ask whether a token is the first or the last of a text. The tables have it stand in
// mid-text; the rare other places are worked out when they occur.
// 256,000 tokens take some 25 ms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "decoders/text_step.h"
#include "vocabulary/token_list.h"
#include "base/utf8_replace.h"
#include "vocabulary/vocabulary.h"

namespace tokenweir {

// How tokens spell bytes.
enum class Spelling : uint8_t {
  kText,      // they do not
  kFallback,  // a token such as <0xE4> is one byte, unless it is part of text
  kAlphabet,  // in the byte alphabet
  kBytes,     // as they are
};

// Until when a token counts as the first.
enum class FirstUntil : uint8_t {
  kToken,  // there was one
  kSpace,  // there was text or a space that a step took away
  kText,   // there was text
};

struct Decoding {
  TextSteps token;  // for each token as it is spelled
  Spelling spelling;
  TextSteps run;  // for each token that is text, and for the text of each run of bytes
  TextSteps text;  // for the whole text
  FirstUntil first_until;
};

// A token that is what it is wherever it stands.
struct FixedToken {
  uint32_t id;
  std::string content;
  bool bytes;  // the content is part of a run of bytes, not text
};

class TokenBytes {
 public:
  // `names` are the tokens as spelled, `given` tells which ids have one; ids without one (gaps, padding rows below the
  // embedding's size) stand for nothing.
  TokenBytes(Decoding decoding, const std::vector<std::string_view>& names, const std::vector<bool>& given,
             const std::vector<bool>& special, const std::vector<FixedToken>& fixed)
      : decoding_(std::move(decoding)), flags_(names.size()) {
    const auto depends = [&](When when) { return decoding_.token.depends_on(when) || decoding_.run.depends_on(when); };
    first_differs_ = depends(When::kFirst) || depends(When::kLater);
    last_differs_ = depends(When::kLast) || depends(When::kNotLast);
    if (last_differs_) {
      // The stream holds what may be the last token as text; bytes could neither be cut nor stand beside it.
      bool bytes = decoding_.spelling != Spelling::kText;
      for (const FixedToken& token : fixed) bytes |= token.bytes;
      if (bytes) throw Unsupported("a decoder that asks for the last token, where tokens may be bytes");
    }
    if (first_differs_ || last_differs_) names_ = TokenList(names);
    double longest = 0;  // what all contents may take together
    for (const std::string_view name : names) longest += static_cast<double>(name.size());
    if (longest * decoding_.token.growth() * decoding_.run.growth() > kMaxBytes)
      throw Unsupported("a decoder whose replacements may make more than " + std::to_string(kMaxBytes) + " bytes");
    std::unordered_map<uint32_t, const FixedToken*> fixed_of;
    for (const FixedToken& token : fixed) {
      if (token.id >= names.size()) throw FileError("token id " + std::to_string(token.id) + " is out of range");
      fixed_of[token.id] = &token;
      flags_[token.id] = kFixed;
    }
    TokenList::Builder contents(names.size());
    contents.bytes().reserve(static_cast<size_t>(longest));
    for (uint32_t id = 0; id < names.size(); id++) {
      if (flags_[id] & kFixed) {
        const FixedToken& token = *fixed_of[id];
        contents.bytes() += token.content;
        flags_[id] |= kGiven | (given[id] && special[id] ? kSpecial : 0) | (token.bytes ? kBytes : 0);
      } else if (given[id]) {
        flags_[id] = kGiven | (special[id] ? kSpecial : 0);
        if (render(names[id], {false, false}, contents.bytes())) flags_[id] |= kBytes;
      } else {
        contents.bytes() += names[id];
      }
      contents.end_token();
    }
    contents_ = TokenList(std::move(contents));
  }

  size_t size() const { return flags_.size(); }

  void check(int64_t id) const {
    if (id < 0 || static_cast<uint64_t>(id) >= size())
      throw BadTokenId("token id " + std::to_string(id) + " is outside the vocabulary (0 to " +
                       std::to_string(size() - 1) + ")");
  }

  // From here on `id` is known to be in range.

  bool given(size_t id) const { return flags_[id] & kGiven; }
  bool special(size_t id) const { return flags_[id] & kSpecial; }

  // What the token stands for in mid-text.
  std::string_view content(size_t id) const { return contents_[id]; }

  // A number that stands for what every id stands for.
  uint64_t digest() const {
    uint64_t digest = 0xCBF29CE484222325;  // FNV-1a, by Fowler, Noll and Vo
    const auto take = [&digest](uint8_t byte) { digest = (digest ^ byte) * 0x100000001B3; };
    for (size_t id = 0; id < size(); id++) {
      for (const char c : content(id)) take(static_cast<uint8_t>(c));
      take(0xFF);  // no UTF-8 has it
      take(flags_[id]);
    }
    for (const size_t n : {run_steps().size(), text_steps().size(), static_cast<size_t>(decoding_.first_until)})
      take(static_cast<uint8_t>(n));
    return digest;
  }

  // Whether that is part of a run of bytes; if not, it is text.
  bool is_bytes(size_t id) const { return flags_[id] & kBytes; }

  // The same elsewhere; whether it is bytes comes second.
  std::pair<std::string, bool> content_at(size_t id, Place place) const {
    if (flags_[id] & kFixed) return {std::string(content(id)), is_bytes(id)};
    std::string content;
    const bool bytes = render(names_[id], place, content);
    return {std::move(content), bytes};
  }

  bool first_differs() const { return first_differs_; }
  bool last_differs() const { return last_differs_; }
  FirstUntil first_until() const { return decoding_.first_until; }

  // Runs of bytes go on over text: all tokens are bytes, and those that are whole characters are only called text.
  bool all_bytes() const { return decoding_.spelling >= Spelling::kAlphabet; }

  // Whether decoding is nothing but joining what the tokens stand for, as bytes.
  bool joins() const {
    return all_bytes() && !first_differs_ && !last_differs_ && decoding_.run.empty() && decoding_.text.empty();
  }

  // Appends what tokens stand for to `out`, whose size is then what it was and theirs. `kept`: those that count.
  template <class Id, class Kept>
  void join(const Id* ids, size_t n, std::string& out, Kept&& kept) const {
    size_t at = out.size();
    out.resize(at + n * 5 + kSlack);
    const char* const end = size() == 0 ? nullptr : contents_[0].data() + contents_.bytes();
    for (size_t i = 0; i < n; i++) {
      check(static_cast<int64_t>(ids[i]));
      const auto id = static_cast<size_t>(ids[i]);
      if (!kept(id)) continue;
      const std::string_view content = contents_[id];
      if (out.size() - at < content.size() + kSlack) out.resize(at + at / 2 + content.size() + 2 * kSlack);
      if (content.size() <= kSlack && end - content.data() >= static_cast<ptrdiff_t>(kSlack))  // a copy of a fixed size is one instruction
        std::memcpy(out.data() + at, content.data(), kSlack);
      else
        std::memcpy(out.data() + at, content.data(), content.size());
      at += content.size();
    }
    out.resize(at);
  }

  const TextSteps& run_steps() const { return decoding_.run; }
  const TextSteps& text_steps() const { return decoding_.text; }

 private:
  static constexpr size_t kSlack = 16;
  static constexpr uint32_t kMaxBytes = 1u << 30;  // as many as the longest file has that is read
  static constexpr uint8_t kGiven = 1, kSpecial = 2, kBytes = 4, kFixed = 8;

  // Appends what a token stands for to `out`; returns whether that is bytes.
  bool render(std::string_view name, Place place, std::string& out) const {
    std::string changed;
    if (!decoding_.token.empty()) name = changed = decoding_.token.apply(name, place);
    const size_t before = out.size();
    switch (decoding_.spelling) {
      case Spelling::kAlphabet:
        append_alphabet_bytes(name, out);
        return !is_utf8(std::string_view(out).substr(before));
      case Spelling::kBytes:
        out += name;
        return !is_utf8(name);
      case Spelling::kFallback:
        if (const int byte = fallback_byte(name); byte >= 0) {
          out += static_cast<char>(byte);
          return true;
        }
        [[fallthrough]];
      default:
        out += decoding_.run.empty() ? name : decoding_.run.apply(name, place);
        return false;
    }
  }

  // The byte that a token such as <0xE4> stands for, or -1. Rust's parser, which the library uses, takes <0x+F> too.
  static int fallback_byte(std::string_view token) {
    if (token.size() != 6 || token.substr(0, 3) != "<0x" || token[5] != '>') return -1;
    const int high = token[3] == '+' ? 0 : hex(token[3]), low = hex(token[4]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
  }

  static int hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  }

  Decoding decoding_;
  std::vector<uint8_t> flags_;
  TokenList names_, contents_;  // the names only where a token's place matters
  bool first_differs_, last_differs_;
};

}  // namespace tokenweir
