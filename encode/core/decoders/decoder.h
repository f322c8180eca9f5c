// The content of each id: text, or bytes that are text only together with their neighbours.
//
// A decoder passes the spelled tokens through steps. Most steps concern each token by itself, so their result is
// precomputed for every token. The stream (decode_stream.h) handles the rest: runs of bytes, and steps that see the
// whole text. Some steps depend on whether a token is the first or the last of a text. The tables hold the form in
// mid-text; the other forms are computed on demand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "base/utf8_replace.h"
#include "decoders/text_step.h"
#include "decoders/token_contents.h"
#include "vocabulary/token_list.h"
#include "vocabulary/vocabulary.h"

namespace tokenweir {

// The way in which tokens spell bytes.
enum class Spelling : uint8_t {
  kText,      // not at all: tokens are text
  kFallback,  // a token such as <0xE4> is one byte, all others are text
  kAlphabet,  // in the byte alphabet
  kBytes,     // as raw bytes
};

// The event after which tokens no longer count as the first.
enum class FirstUntil : uint8_t {
  kToken,  // any token
  kSpace,  // text, or a space that a step removed
  kText,   // text
};

struct Decoding {
  TextSteps token;  // for each token as it is spelled
  Spelling spelling;
  TextSteps run;   // for each token that is text, and for the text of each run of bytes
  TextSteps text;  // for the whole text
  FirstUntil first_until;
};

// A token to which no step applies.
struct FixedToken {
  uint32_t id;
  std::string content;
  bool bytes;  // the content is part of a run of bytes, not text
};

class TokenBytes {
 public:
  // `names` are the tokens as spelled, and `given` marks the ids that have one. Ids without a token (gaps, padding rows
  // of the embedding) decode to nothing.
  TokenBytes(Decoding decoding, const std::vector<std::string_view>& names, const std::vector<bool>& given,
             const std::vector<bool>& special, const std::vector<FixedToken>& fixed)
      : decoding_(std::move(decoding)), contents_(names.size()) {
    const auto depends = [&](When when) { return decoding_.token.depends_on(when) || decoding_.run.depends_on(when); };
    first_differs_ = depends(When::kFirst) || depends(When::kLater);
    last_differs_ = depends(When::kLast) || depends(When::kNotLast);
    if (last_differs_) {
      // The stream holds the last token as text, which does not work for tokens of bytes.
      bool bytes = decoding_.spelling != Spelling::kText;
      for (const FixedToken& token : fixed) bytes |= token.bytes;
      if (bytes) throw Unsupported("a decoder that asks for the last token, where tokens may be bytes");
    }
    if (first_differs_ || last_differs_) names_ = TokenList(names);
    double longest = 0;  // an upper bound for the size of all contents
    for (const std::string_view name : names) longest += static_cast<double>(name.size());
    if (longest * decoding_.token.growth() * decoding_.run.growth() > kMaxBytes)
      throw Unsupported("a decoder whose replacements may make more than " + std::to_string(kMaxBytes) + " bytes");
    std::unordered_map<uint32_t, const FixedToken*> fixed_of;
    for (const FixedToken& token : fixed) {
      if (token.id >= names.size()) throw FileError("token id " + std::to_string(token.id) + " is out of range");
      fixed_of[token.id] = &token;
    }
    std::string content;
    for (uint32_t id = 0; id < names.size(); id++) {
      content.clear();
      uint8_t flags = given[id] && special[id] ? kSpecial : 0;
      if (const auto found = fixed_of.find(id); !fixed.empty() && found != fixed_of.end()) {
        content = found->second->content;
        flags |= kFixed | (found->second->bytes ? kBytes : 0);
      } else if (given[id]) {
        if (render(names[id], {false, false}, content)) flags |= kBytes;
      } else {
        content = names[id];
        flags |= kMissing;
      }
      contents_.set(id, content);
      contents_.flags(id) = flags;
    }
  }

  // Reads serialized tables that were built with the same steps.
  template <class Reader>
  TokenBytes(Decoding decoding, Reader& kept) : decoding_(std::move(decoding)) {
    fields(kept);
  }

  template <class Visit>
  void fields(Visit& visit) {
    visit(contents_, names_, first_differs_, last_differs_);
  }

  size_t size() const { return contents_.size(); }

  void check(int64_t id) const {
    if (static_cast<uint64_t>(id) >= size()) refuse(id);
  }

  // The following methods require an `id` in range.

  bool given(size_t id) const { return !(contents_.flags(id) & kMissing); }
  bool special(size_t id) const { return contents_.flags(id) & kSpecial; }

  // The content of a token in mid-text.
  std::string_view content(size_t id) const { return contents_[id]; }

  // A digest of all contents, so that a saved state is not used with another vocabulary.
  uint64_t digest() const {
    uint64_t digest = 0xCBF29CE484222325;  // FNV-1a, by Fowler, Noll and Vo
    const auto take = [&digest](uint8_t byte) { digest = (digest ^ byte) * 0x100000001B3; };
    for (size_t id = 0; id < size(); id++) {
      for (const char c : content(id)) take(static_cast<uint8_t>(c));
      take(0xFF);  // a separator that UTF-8 does not contain
      take(contents_.flags(id));
    }
    for (const size_t n : {run_steps().size(), text_steps().size(), static_cast<size_t>(decoding_.first_until)})
      take(static_cast<uint8_t>(n));
    return digest;
  }

  // Whether the content is part of a run of bytes; otherwise it is text.
  bool is_bytes(size_t id) const { return contents_.flags(id) & kBytes; }

  // The content at another place in the text, and whether it is bytes.
  std::pair<std::string, bool> content_at(size_t id, Place place) const {
    if (contents_.flags(id) & kFixed) return {std::string(content(id)), is_bytes(id)};
    std::string content;
    const bool bytes = render(names_[id], place, content);
    return {std::move(content), bytes};
  }

  bool first_differs() const { return first_differs_; }
  bool last_differs() const { return last_differs_; }

  // Whether the token after a first token counts as first too; `first_content` is the content of this one as the first.
  bool stays_first(size_t id, std::string_view first_content, bool bytes) const {
    if (bytes || !first_content.empty() || decoding_.first_until == FirstUntil::kToken) return false;
    return decoding_.first_until == FirstUntil::kText || content(id).empty();
  }

  // Whether all tokens are bytes. Runs of bytes then continue over tokens that are complete characters, which are
  // flagged as text.
  bool all_bytes() const { return decoding_.spelling >= Spelling::kAlphabet; }

  // Whether decoding is the concatenation of all contents, as bytes.
  bool joins() const {
    return all_bytes() && !first_differs_ && !last_differs_ && decoding_.run.empty() && decoding_.text.empty();
  }

  // Appends the contents of tokens to `out`, without special ones if they are skipped.
  template <class Id>
  void join(const Id* ids, size_t n, bool skip_special, GrowingBuffer<char>& out) const {
    bool good = true;
    for (size_t i = 0; i < n; i++) good &= static_cast<uint64_t>(static_cast<int64_t>(ids[i])) < size();
    for (size_t i = 0; i < n && !good; i++) check(static_cast<int64_t>(ids[i]));
    contents_.join(ids, n, kMissing | (skip_special ? kSpecial : 0), out);
  }

  const TextSteps& run_steps() const { return decoding_.run; }
  const TextSteps& text_steps() const { return decoding_.text; }

 private:
  static constexpr uint32_t kMaxBytes = 1u << 30;  // the size limit of tokenizer files
  static constexpr uint8_t kMissing = 1, kSpecial = 2, kBytes = 4, kFixed = 8;

  [[noreturn]] void refuse(int64_t id) const {
    throw BadTokenId("token id " + std::to_string(id) + " is outside the vocabulary (0 to " +
                     std::to_string(size() - 1) + ")");
  }

  // Appends the content of a token to `out`; returns whether it is bytes.
  bool render(std::string_view name, Place place, std::string& out) const {
    std::string changed;
    if (!decoding_.token.empty()) name = changed = decoding_.token.apply(name, place);
    const size_t before = out.size();
    switch (decoding_.spelling) {
      case Spelling::kAlphabet: append_alphabet_bytes(name, out); return !is_utf8(std::string_view(out).substr(before));
      case Spelling::kBytes: out += name; return !is_utf8(name);
      case Spelling::kFallback:
        if (const int byte = fallback_byte(name); byte >= 0) {
          out += static_cast<char>(byte);
          return true;
        }
        [[fallthrough]];
      default: out += decoding_.run.empty() ? name : decoding_.run.apply(name, place); return false;
    }
  }

  // Returns the byte of a token such as <0xE4>, or -1. Rust's parser, which the library uses, accepts <0x+F> too.
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
  TokenContents contents_;
  TokenList names_;  // only where a token's place matters
  bool first_differs_, last_differs_;
};

}  // namespace tokenweir
