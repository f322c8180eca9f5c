// The tokens of a model as bytes, independent of the alphabet in which the file spells them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "base/utf8.h"
#include "vocabulary/token_ids.h"

namespace tokenweir {

// GPT-2's byte alphabet: a printable byte is the character of the same code, the other 68 are U+0100 and up, in order.
class ByteAlphabet {
 public:
  ByteAlphabet() {
    std::fill(std::begin(byte_of_), std::end(byte_of_), int16_t{-1});
    uint32_t next = 0x100;
    for (uint32_t byte = 0; byte < 256; byte++) {
      const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
      letter_of_[byte] = static_cast<uint16_t>(printable ? byte : next++);
      byte_of_[letter_of_[byte]] = static_cast<int16_t>(byte);
    }
  }

  // Returns the character of a byte, as UTF-8.
  std::string letter(uint8_t byte) const {
    const uint32_t c = letter_of_[byte];
    if (c < 0x80) return std::string(1, static_cast<char>(c));
    return {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
  }

  // Returns the byte of a character of the alphabet.
  uint8_t byte(uint32_t letter) const { return static_cast<uint8_t>(byte_of_[letter]); }

  // Appends the bytes that `token` spells to `out`. Returns false, and appends nothing, if a character is not of the
  // alphabet.
  bool append(std::string_view token, std::string& out) const {
    const size_t before = out.size();
    const auto* p = reinterpret_cast<const uint8_t*>(token.data());
    for (const auto* end = p + token.size(); p < end;) {
      uint32_t length;
      const uint32_t c = utf8_decode(p, length);
      if (c >= kSize || byte_of_[c] < 0) {
        out.resize(before);
        return false;
      }
      out.push_back(static_cast<char>(byte_of_[c]));
      p += length;
    }
    return true;
  }

 private:
  static constexpr uint32_t kSize = 0x144;
  uint16_t letter_of_[256];
  int16_t byte_of_[kSize];  // by character; -1 if it is not of the alphabet
};

// Appends the bytes of a token's name as HuggingFace's ByteLevel decoder does: a name with any character outside the
// alphabet is plain text as a whole. Returns whether the name is spelled in the alphabet.
inline bool append_alphabet_bytes(std::string_view name, std::string& out) {
  static const ByteAlphabet alphabet;
  if (alphabet.append(name, out)) return true;
  out += name;
  return false;
}

// The spelling of tokens in a file.
enum class Names : uint8_t {
  kAlphabet,  // in the byte alphabet
  kPlain,     // as plain text
};

struct Vocabulary {
  TokenIds ids;                 // the tokens as the file spells them
  TokenList bytes;              // the tokens' bytes; empty for an id without a token, or an empty token
  std::vector<bool> reachable;  // whether a piece of text can equal the token, which is then not empty

  Vocabulary(TokenIds tokens, Names kind)
      : ids(std::move(tokens)), bytes(ids.names()), reachable(ids.given()), spelled_(kind == Names::kAlphabet) {
    for (uint32_t id = 0; id < size(); id++)
      if (bytes[id].empty()) reachable[id] = false;
    if (spelled_) bytes = spelled();
  }

  size_t size() const { return ids.names().size(); }

  // Returns a table of the reachable tokens by their bytes.
  std::shared_ptr<const TokenTable> table() const {
    if (!spelled_) return ids.table();
    auto table = std::make_shared<TokenTable>(bytes);
    for (uint32_t id = 0; id < size(); id++)
      if (reachable[id]) table->insert(id);
    return table;
  }

 private:
  TokenList spelled() {
    TokenList::Builder builder(size());
    builder.bytes().reserve(ids.names().bytes());
    for (uint32_t id = 0; id < size(); id++) {
      if (!append_alphabet_bytes(ids.names()[id], builder.bytes())) reachable[id] = false;
      builder.end_token();
    }
    return TokenList(std::move(builder));
  }

  bool spelled_;  // the file spells tokens in the byte alphabet
};

}  // namespace tokenweir
