// A BPE model's tables in the layout of kernels (device_bpe.h).
//
// The table of pieces has each token that its bytes, as a whole piece, become: with `ignore_merges`, or if the bytes
// merge to it. Control tokens are in no table, so kernels encode like `guarded`. In a text in which added tokens are
// matched this makes no difference, because the added token would have been found at those bytes.
//
// A model over characters runs in the same kernels, whether it merges by a list or by scores: merging begins with whole
// characters, beside any neighbour, and the bytes of a character that is not a token are tokens that never merge. In
// its text a space may represent U+2581.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "gpu_tables/device_bpe.h"
#include "models/bpe.h"
#include "models/character_bpe.h"
#include "models/sentencepiece_bpe.h"

namespace tokenweir {

// Replaces U+2581 in a token by a space.
inline std::string with_spaces(std::string_view token) {
  constexpr std::string_view sign = "\u2581";
  std::string text(token);
  for (size_t at = text.find(sign); at != std::string::npos; at = text.find(sign, at))
    text.replace(at, sign.size(), " ");
  return text;
}

struct DeviceTables {
  std::vector<PieceSlot> pieces;
  std::vector<uint8_t> rest;
  std::vector<PairBucket> pairs;
  std::vector<uint32_t> merged_ids;  // by priority; empty if the id is the priority plus `merged_shift`
  uint64_t merged_shift = 0;
  std::vector<uint32_t> ranks;  // empty if no two pieces have the same rank
  std::vector<uint32_t> byte_ids, ascii_pairs, characters, lengths;
  std::vector<uint64_t> lone;  // `LoneIds`; empty for a model of characters

  // `searched` are the added tokens that are searched for in text, with their ids.
  DeviceTables(const Bpe& bpe, const std::vector<std::pair<uint32_t, std::string>>& searched)
      : byte_ids(bpe.byte_ids(), bpe.byte_ids() + 256), lengths(bpe.tokens().size()) {
    check_control(bpe, searched);
    for (uint32_t id = 0; id < lengths.size(); id++) lengths[id] = static_cast<uint32_t>(bpe.tokens()[id].size());
    put_pieces(
        bpe.tokens(), [&](uint32_t id) { return bpe.is_reachable(id) && !bpe.is_control(id); },
        [&](uint32_t id) { return bpe.ignores_merges() && !bpe.merges_to(id); });
    put_pairs(bpe);
    put_merged(bpe);
    const uint32_t* entries = bpe.characters()->table().entries;
    characters.assign(entries, entries + CharacterTokens::kCharacters);
    if (controls_merge_) std::fill(characters.begin(), characters.end(), kNone);  // proven for all pairs
    put_ascii_pairs([&](uint32_t a, uint32_t b) { return bpe.priority(a, b, true); });
    put_lone(bpe);
  }

  // `spaces`: in the text of kernels a space represents U+2581.
  DeviceTables(const CharacterBpe& bpe, bool spaces) : byte_ids(256) {
    if (!bpe.split_points() || !bpe.split_points()->all_known())
      throw Unsupported(
          "a model of characters that looks at their places, or in which an unknown one becomes no bytes");
    std::vector<std::string_view> tokens;
    for (size_t id = 0; id < bpe.tokens().size(); id++) tokens.push_back(bpe.tokens()[id]);
    put_model(bpe, tokens, spaces);
  }

  // `pieces` are those from which the model was built.
  DeviceTables(const SentencePieceBpe& bpe, const std::vector<std::string_view>& pieces_by_id, bool spaces)
      : byte_ids(256) {
    if (!bpe.split_points() || !bpe.split_points()->all_known())
      throw Unsupported(
          "unused pieces that merging may make, or a model in which an unknown character becomes no bytes");
    if (bpe.has_other_symbols()) throw Unsupported("unused pieces, or pieces with a character that is none");
    put_model(bpe, pieces_by_id, spaces);
    if (bpe.ranks()) ranks = *bpe.ranks(), ranks.push_back(kNone);
  }

 private:
  static constexpr size_t kMaxProbes = 64;  // slots of pieces, or full buckets of pairs, that a look-up may probe

  bool controls_merge_ = false;

  // Throws if the model can make a control token of text that does not spell it. The guard would have to search for
  // more than added tokens then, and kernels search only for these.
  void check_control(const Bpe& bpe, const std::vector<std::pair<uint32_t, std::string>>& searched) {
    std::vector<bool> reached(bpe.tokens().size());
    bpe.pairs().for_each([&](uint32_t, uint32_t, uint32_t priority) { reached[bpe.merged()[priority]] = true; });
    for (uint32_t id = 0; id < reached.size(); id++) {
      if (!bpe.is_control(id) || bpe.tokens()[id].size() == 1) continue;
      controls_merge_ |= reached[id];
      if (!reached[id] && !bpe.is_reachable(id)) continue;
      const bool found = std::any_of(searched.begin(), searched.end(), [&](const auto& token) {
        return token.first == id && token.second == bpe.tokens()[id];
      });
      if (!found) throw Unsupported("control token " + std::to_string(id) + " is made of text that does not spell it");
    }
  }

  // The ids of characters alone; none if merging makes control tokens, which kernels leave out.
  void put_lone(const Bpe& bpe) {
    lone.assign(CharacterTokens::kCharacters, 0);
    for (uint32_t c = 0x80; c < CharacterTokens::kCharacters && !controls_merge_; c++) {
      LoneIds ids{bpe.characters()->lone(c)};
      if (ids.count() == 0 || (c >= 0xD800 && c < 0xE000)) continue;
      if (ids.count() == 2) ids.word |= uint64_t{lengths[ids.id(0)]} << 2 * LoneIds::kIdBits;
      uint8_t bytes[4];
      const uint32_t whole = bpe.token(bytes, utf8_encode(c, bytes));
      const bool is_whole = ids.count() == 1 && ids.id(0) == whole;
      if (!is_whole && whole != kNone && bpe.is_reachable(whole)) ids.word |= uint64_t{1} << LoneIds::kOtherWholeBit;
      lone[c] = ids.word;
    }
  }

  // -- a model of characters ------------------------------------------------------------------------------------------

  template <class Model>
  void put_model(const Model& bpe, const std::vector<std::string_view>& tokens, bool spaces) {
    if (bpe.guards()) throw Unsupported("control tokens that text may become");
    std::vector<std::string> spelled;
    for (const std::string_view token : tokens) {
      spelled.push_back(spaces ? with_spaces(token) : std::string(token));
      lengths.push_back(static_cast<uint32_t>(spelled.back().size()));
    }
    put_characters(bpe, spaces);
    check_bytes(bpe);
    put_pieces(TokenList(std::vector<std::string_view>(spelled.begin(), spelled.end())), Whole<Model>{bpe, tokens},
               [](uint32_t) { return false; });
    put_pairs(bpe);
    put_merged(bpe);
    put_ascii_pairs([&](uint32_t a, uint32_t b) { return bpe.priority(a, b); });
  }

  // Whether merging the text of a token yields this token.
  template <class Model>
  struct Whole {
    const Model& bpe;
    const std::vector<std::string_view>& tokens;

    bool operator()(uint32_t id) const {
      const std::string_view token = tokens[id];
      if (token.empty() || bpe.is_control(id)) return false;
      ModelScratch scratch;
      IdBuffer ids;
      bpe.encode(reinterpret_cast<const uint8_t*>(token.data()), token.size(), true, scratch, ids, nullptr);
      return ids.size() == 1 && static_cast<uint32_t>(ids.data()[0]) == id;
    }
  };

  template <class Model>
  void put_characters(const Model& bpe, bool spaces) {
    constexpr uint32_t kSafe = 0xF000000;  // all four flags: safe beside any neighbour
    uint32_t end = CharacterTokens::kCharacters;
    for (uint32_t c = end; c < 0x110000; c++)
      if (bpe.character(c) != kNone) end = c + 1;
    characters.assign(end, kNone);
    for (uint32_t c = 0x80; c < end; c++)
      if (const uint32_t id = bpe.character(c); id != kNone && !bpe.is_control(id)) characters[c] = id | kSafe;
    for (uint32_t byte = 0; byte < 256; byte++) {
      const uint32_t own = byte < 0x80 ? bpe.character(byte == ' ' && spaces ? 0x2581 : byte) : kNone;
      byte_ids[byte] = own == kNone || bpe.is_control(own) ? bpe.byte(static_cast<uint8_t>(byte)) : own;
      if (byte == ' ' && spaces && own == kNone) throw Unsupported("a vocabulary without U+2581");
    }
  }

  // A byte token has length one, so no text may merge to it.
  template <class Model>
  void check_bytes(const Model& bpe) {
    std::vector<bool> stands_for_byte(lengths.size());
    for (uint32_t byte = 0; byte < 256; byte++)
      if (const uint32_t id = byte_ids[byte]; id == bpe.byte(static_cast<uint8_t>(byte)))
        stands_for_byte[id] = true, lengths[id] = 1;
    for (const uint32_t id : bpe.merged())
      if (stands_for_byte[id]) throw Unsupported("text that becomes a token of a byte");
  }

  // -- either kind ----------------------------------------------------------------------------------------------------

  template <class AsciiPair>
  void put_ascii_pairs(const AsciiPair& priority) {
    for (uint32_t a = 0; a < 128; a++)
      for (uint32_t b = 0; b < 128; b++) ascii_pairs.push_back(priority(byte_ids[a], byte_ids[b]));
  }

  template <class TakesWhole, class OnlyWhole>
  void put_pieces(const TokenList& tokens, const TakesWhole& takes_whole, const OnlyWhole& only_whole) {
    std::vector<uint32_t> whole;
    for (uint32_t id = 0; id < lengths.size(); id++)
      if (takes_whole(id)) whole.push_back(id);
    pieces.assign(size_t{1} << slot_bits(whole.size()), {{0, 0}, kNone, 0, 0, 0});
    const uint64_t mask = pieces.size() - 1;
    for (const uint32_t id : whole) {
      const std::string_view token = tokens[id];
      PieceSlot slot{
          {word(token, 0), word(token, 8)}, id, lengths[id], static_cast<uint32_t>(rest.size()), only_whole(id)};
      if (token.size() > PieceTable::kHead) rest.insert(rest.end(), token.begin() + PieceTable::kHead, token.end());
      uint64_t i = PieceTable::hash(slot.head[0], slot.head[1], slot.length, static_cast<uint8_t>(token.back())) & mask;
      for (size_t probes = 0; pieces[i].id != kNone; i = (i + 1) & mask)
        if (++probes == kMaxProbes) throw Unsupported("tokens that a table cannot tell apart by their first 16 bytes");
      pieces[i] = slot;
    }
  }

  static uint64_t word(std::string_view token, size_t from) {
    uint64_t bytes = 0;
    if (from < token.size()) std::memcpy(&bytes, token.data() + from, std::min<size_t>(8, token.size() - from));
    return bytes;
  }

  template <class Model>
  void put_pairs(const Model& bpe) {
    size_t n = 0;
    bpe.pairs().for_each([&](uint32_t, uint32_t, uint32_t) { n++; });
    PairBucket empty;
    std::fill(std::begin(empty.slots), std::end(empty.slots), PairBucket::kEmpty);
    pairs.assign(size_t{1} << bucket_bits(n), empty);
    const int shift = 64 - bucket_bits(n);
    bpe.pairs().for_each([&](uint32_t left, uint32_t right, uint32_t priority) {
      if (bpe.is_control(bpe.merged()[priority])) return;
      const uint64_t key = pair_key(left, right);
      uint64_t i = mix(key) >> shift;
      uint64_t* slot = std::begin(pairs[i].slots);
      for (size_t probes = 0; *slot != PairBucket::kEmpty;)
        if (++slot == std::end(pairs[i].slots)) {
          slot = std::begin(pairs[i = (i + 1) & (pairs.size() - 1)].slots);
          if (++probes == kMaxProbes) refuse_collisions();
        }
      *slot = key << 24 | priority;
    });
    size_t full = 0;
    for (const PairBucket& bucket : pairs)
      if ((full = bucket.slots[PairBucket::kSlots - 1] == PairBucket::kEmpty ? 0 : full + 1) == kMaxProbes)
        refuse_collisions();
  }

  // Only chosen pairs can collide so, because at most half of the slots are full.
  [[noreturn]] static void refuse_collisions() { throw Unsupported("merges that collide in the table of pairs"); }

  // Fills at most half of the slots.
  static int bucket_bits(size_t pairs) { return std::max(1, slot_bits(pairs) - 2); }

  template <class Model>
  void put_merged(const Model& bpe) {
    const SharedArray<uint32_t>& merged = bpe.merged();
    merged_shift = merged.empty() ? 0 : uint64_t{merged[0]};
    for (size_t priority = 0; priority < merged.size(); priority++)
      if (merged[priority] != priority + merged_shift) {
        merged_ids.assign(merged.begin(), merged.end());
        return;
      }
  }
};

}  // namespace tokenweir
