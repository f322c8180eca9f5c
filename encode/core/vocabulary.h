// The tokens of a model as bytes, whatever alphabet the file spells them in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "errors.h"
#include "hash_table.h"
#include "utf8.h"

namespace tokenweir {

// GPT-2's alphabet: printable characters stand for themselves, the other 68 bytes for U+0100 and on, in order.
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

  // The character that stands for `byte`, as UTF-8.
  std::string letter(uint8_t byte) const {
    const uint32_t c = letter_of_[byte];
    if (c < 0x80) return std::string(1, static_cast<char>(c));
    return {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
  }

  // The byte that a character of the alphabet stands for.
  uint8_t byte(uint32_t letter) const { return static_cast<uint8_t>(byte_of_[letter]); }

  // The bytes that `token` spells; false, with `bytes` unset, if a character is not of the alphabet.
  bool bytes(std::string_view token, std::string& bytes) const {
    std::string spelled;
    const auto* p = reinterpret_cast<const uint8_t*>(token.data());
    for (const auto* end = p + token.size(); p < end;) {
      uint32_t length;
      const uint32_t c = utf8_decode(p, length);
      if (c >= kSize || byte_of_[c] < 0) return false;
      spelled.push_back(static_cast<char>(byte_of_[c]));
      p += length;
    }
    bytes = std::move(spelled);
    return true;
  }

 private:
  static constexpr uint32_t kSize = 0x144;
  uint16_t letter_of_[256];
  int16_t byte_of_[kSize];  // by character; -1: not of the alphabet
};

// Sets `out` to the bytes of a token's name, as HuggingFace's ByteLevel decoder has them: a name with any character
// outside the alphabet counts as plain text, whole. Returns whether it has none.
inline bool alphabet_bytes(std::string_view name, std::string& out) {
  static const ByteAlphabet alphabet;
  if (alphabet.bytes(name, out)) return true;
  out = name;
  return false;
}

struct Vocabulary {
  bool byte_level;                  // names are spelled in the byte alphabet
  bool plain;                       // they are plain text, which may be empty
  std::vector<std::string> names;   // as the file spells them; empty, unless `given`: no such token
  std::vector<bool> given;          // there is such a token
  std::vector<std::string> bytes;   // what the decoder makes of them
  std::vector<bool> reachable;      // a piece of text can equal the token

  explicit Vocabulary(bool byte_level, bool plain = false) : byte_level(byte_level), plain(plain) {}

  void add(std::string_view name, int64_t id) {
    if (id < 0 || id > PairTable::kMaxId)
      throw Unsupported("token id " + std::to_string(id) + "; ids from 0 to " + std::to_string(PairTable::kMaxId) +
                        " fit");
    if (name.empty() && !plain) throw FileError("token " + std::to_string(id) + " is empty");
    const size_t at = static_cast<size_t>(id);
    if (at >= names.size()) {
      names.resize(at + 1);
      given.resize(at + 1);
      bytes.resize(at + 1);
      reachable.resize(at + 1);
    }
    if (given[at]) throw FileError("token id " + std::to_string(id) + " is given twice");
    names[at] = name;
    given[at] = true;
    if (byte_level) {
      reachable[at] = alphabet_bytes(name, bytes[at]);
    } else {
      bytes[at] = name;
      reachable[at] = true;
    }
  }
};

}  // namespace tokenweir
