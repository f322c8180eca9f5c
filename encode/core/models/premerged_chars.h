// Characters whose bytes always merge first, so that merging may begin with the whole character.
//
// A Chinese piece has three bytes a character, and most of its merges only assemble characters. A character may be an
// initial symbol where this provably changes nothing. Let its bytes, merged alone, become one token T, by merges of
// priority at most R. If every pair that joins the character to a neighbour, at any stage from its bytes to T, has a
// priority above R, then
// - while the character is incomplete, a merge inside it always precedes one across its edge;
// - a merge that uses T follows every merge elsewhere of priority R or less, as it does if T is made late. So merging
//   has the same result whether T is there from the start or not. Pairs across an edge depend on the neighbour; they
//   are checked separately for ASCII and other neighbours, and the edge of a piece is always safe. Building takes one
//   pass over the pairs and 64k small merges; most Chinese characters qualify.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "models/character_tokens.h"
#include "vocabulary/hash_table.h"

namespace tokenweir {

class PremergedChars {
 public:
  PremergedChars() = default;

  PremergedChars(const PairTable& pairs, const std::vector<uint32_t>& merged, const uint32_t (&byte_ids)[256],
                 const TokenList& tokens)
      : tokens_(CharacterTokens::kCharacters, kNone), lone_ids_(CharacterTokens::kCharacters, 0) {
    for (uint32_t c = 0; c < 0x80; c++) lone_ids_[c] = pack(&byte_ids[c], 1);
    // For each token that may be a part of a character: the lowest priority of any pair with it on the left or right,
    // by the kind of the other side's edge. Only those tokens have an entry: they are few, so the table stays in the
    // cache.
    std::vector<uint32_t> places(tokens.size(), 0);  // index of the entry; 0 without one
    uint32_t parts = 0;
    for (uint32_t id = 0; id < tokens.size(); id++) {
      const std::string_view token = tokens[id];
      if (!token.empty() && token.size() <= 3 && !is_ascii(token[0])) places[id] = ++parts;
    }
    std::vector<std::array<std::array<uint32_t, 2>, 2>> lowest(parts + 1, {{{kNone, kNone}, {kNone, kNone}}});
    pairs.for_each([&](uint32_t left, uint32_t right, uint32_t priority) {
      const auto lower = [&](uint32_t& at) { at = std::min(at, priority); };
      if (const uint32_t place = places[right]) lower(lowest[place][kBefore][is_ascii(tokens[left].back())]);
      if (const uint32_t place = places[left]) lower(lowest[place][kAfter][is_ascii(tokens[right].front())]);
    });
    for (uint32_t c = 0x80; c < CharacterTokens::kCharacters; c++) {
      if (c >= 0xD800 && c < 0xE000) continue;
      uint8_t bytes[4];
      uint32_t ids[3];
      size_t n = utf8_encode(c, bytes);
      for (size_t i = 0; i < n; i++) ids[i] = byte_ids[bytes[i]];
      uint32_t highest = 0, across[2][2] = {{kNone, kNone}, {kNone, kNone}};
      for (;;) {
        for (int kind = 0; kind < 2; kind++) {
          across[kBefore][kind] = std::min(across[kBefore][kind], lowest[places[ids[0]]][kBefore][kind]);
          across[kAfter][kind] = std::min(across[kAfter][kind], lowest[places[ids[n - 1]]][kAfter][kind]);
        }
        uint32_t best = kNone;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; i++)
          if (const uint32_t priority = pairs.find(ids[i], ids[i + 1]); priority < best) {
            best = priority;
            at = i;
          }
        if (best == kNone) break;
        highest = std::max(highest, best);
        ids[at] = merged[best];
        if (at + 2 < n) ids[at + 1] = ids[at + 2];
        n--;
      }
      lone_ids_[c] = pack(ids, n);
      if (n > 1) continue;
      uint32_t flags = 0;
      for (int side = 0; side < 2; side++)
        for (int kind = 0; kind < 2; kind++)
          if (across[side][kind] > highest) flags |= flag(side, kind);
      tokens_[c] = ids[0] | flags;
    }
  }

  template <class Visit>
  void fields(Visit& visit) {
    visit(tokens_, lone_ids_);
  }

  CharacterTokens table() const { return {tokens_.data()}; }

  static constexpr int kIdBits = 20;  // as in the table of pairs

  // The one to three ids of a character's bytes merged alone, packed into one word; 0 for characters from U+10000 on.
  uint64_t lone(uint32_t character) const { return character < lone_ids_.size() ? lone_ids_[character] : 0; }

  // Packs one to three ids into one word.
  static uint64_t pack(const uint32_t* ids, size_t n) {
    uint64_t word = uint64_t{n} << 3 * kIdBits;
    for (size_t i = 0; i < n; i++) word |= uint64_t{ids[i]} << kIdBits * i;
    return word;
  }

  // Writes three ids and returns how many of them are valid.
  static size_t unpack(uint64_t ids, int32_t* out) {
    for (int i = 0; i < 3; i++) out[i] = static_cast<int32_t>(ids >> kIdBits * i & ((1u << kIdBits) - 1));
    return ids >> 3 * kIdBits;
  }

  // Returns the token of the character at p[i] of a piece of n bytes, or kNone if it must begin as bytes.
  uint32_t token(const uint8_t* p, size_t i, size_t n) const { return table().token(p, i, n); }

 private:
  static constexpr int kBefore = CharacterTokens::kBefore, kAfter = CharacterTokens::kAfter;

  static bool is_ascii(uint8_t byte) { return CharacterTokens::is_ascii(byte); }
  static uint32_t flag(int side, bool ascii) { return CharacterTokens::flag(side, ascii); }

  SharedArray<uint32_t> tokens_;
  SharedArray<uint64_t> lone_ids_;
};

}  // namespace tokenweir
