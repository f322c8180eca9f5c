// A map of characters to ids: the initial symbols of a piece.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "base/utf8.h"
#include "vocabulary/hash_table.h"

namespace tokenweir {

class CharacterIds {
 public:
  // Inserts a character. The first of its ids wins.
  void insert(uint32_t character, uint32_t id) {
    if (character >= kPlane) {
      others_.emplace(character, id);
      return;
    }
    if (ids_.empty()) ids_ = {kPlane, kNone};
    if (ids_[character] == kNone) ids_[character] = id;
  }

  // Returns the id of a character, or kNone.
  uint32_t find(uint32_t character) const {
    if (character < ids_.size()) return ids_[character];
    const auto found = others_.find(character);
    return found == others_.end() ? kNone : found->second;
  }

  template <class Visit>
  void fields(Visit& visit) {
    visit(ids_, others_);
  }

 private:
  static constexpr uint32_t kPlane = 0x10000;

  SharedArray<uint32_t> ids_;  // of the basic plane
  std::unordered_map<uint32_t, uint32_t> others_;
};

// Calls `use(character, at, length)` for each character of `text`, which must be valid UTF-8.
template <class Use>
void for_each_character(std::string_view text, Use&& use) {
  const auto* p = reinterpret_cast<const uint8_t*>(text.data());
  for (size_t at = 0; at < text.size();) {
    uint32_t length;
    const uint32_t character = utf8_decode(p + at, length);
    use(character, at, size_t{length});
    at += length;
  }
}

// Returns the character of a text that has exactly one, else kNone.
inline uint32_t only_character(std::string_view text) {
  if (text.empty() || text.size() != utf8_length(static_cast<uint8_t>(text[0]))) return kNone;
  uint32_t length;
  return utf8_decode(reinterpret_cast<const uint8_t*>(text.data()), length);
}

}  // namespace tokenweir
