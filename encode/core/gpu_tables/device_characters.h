// A character map by single characters: the bytes that kernels write in place of each character
// (gpu/kernels/normalize.cu).
//
// Most rules of a map have one character. A character that follows another one in some rule may be part of that rule's
// match, so only the host can normalize it. HuggingFace looks up clusters of less than six bytes by their first
// characters. A character that may continue a cluster is unchanged, or becomes a space alone (a zero-width joiner), if the
// character before it is unchanged, or if both have three bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/text_writer.h"
#include "base/utf8.h"
#include "normalizers/charsmap.h"
#include "normalizers/graphemes.h"
#include "vocabulary/character_ids.h"

namespace tokenweir {

struct DeviceCharacters {
  static constexpr uint32_t kGap = 0xFF, kSpaceOnly = 0xFFFFFF20, kHostOnly = 0xFEFEFEFE, kJoins = 0xFDFDFDFD,
                            kSpaceJoins = 0xFCFCFCFC;  // normal.cuh

  std::vector<uint32_t>
      entries;  // by code point: up to four bytes, little-endian, padded with gaps; or a constant above

  // `huggingface`: the map is applied to clusters, and all white space becomes spaces.
  DeviceCharacters(const Charsmap& map, bool huggingface) : entries(0x110000, kHostOnly) {
    std::vector<bool> is_later(entries.size());
    map.for_each_later_character([&](uint32_t c) { is_later[c] = true; });
    for (uint32_t c = 0; c < entries.size(); c++)
      if (!is_later[c] && (c < 0xD800 || c > 0xDFFF)) entries[c] = alone(map, huggingface, c);
    if (huggingface && (entries['\r'] != kSpaceOnly || entries['\n'] != kSpaceOnly))
      entries['\r'] = kHostOnly;  // a cluster
  }

 private:
  static uint32_t alone(const Charsmap& map, bool huggingface, uint32_t c) {
    std::string own;
    TextWriter(own, 4).append_character(c);
    const auto* bytes = reinterpret_cast<const uint8_t*>(own.data());
    const Charsmap::Rule rule = huggingface ? map.shortest(bytes, own.size()) : map.longest(bytes, own.size());
    if (rule.length != 0 && rule.length != own.size()) return kHostOnly;
    const std::string_view made = rule.length ? rule.replacement : std::string_view(own);
    if (made.size() > own.size()) return kHostOnly;
    uint32_t entry = ~0u;
    for (size_t i = 0; i < made.size(); i++)
      entry = (entry & ~(0xFFu << 8 * i)) | uint32_t{static_cast<uint8_t>(made[i])} << 8 * i;
    bool has_space = false, has_sign = false;
    for_each_character(made, [&](uint32_t made_c, size_t, size_t) {
      has_space |= made_c == ' ' || (huggingface && is_white_space(made_c));
      has_sign |= made_c == 0x2581;
    });
    if (has_sign || (has_space && only_character(made) == kNone)) return kHostOnly;
    if (!huggingface || !joins(graphemes::class_of(c))) return has_space ? kSpaceOnly : entry;
    if (graphemes::class_of(c) == graphemes::kPrepend) return kHostOnly;
    return has_space ? kSpaceJoins : made == own ? kJoins : kHostOnly;
  }

  // Whether a character, except a line feed, may belong to a cluster of several characters. (A Hangul syllable or an
  // emoji does so only beside another such character.)
  static bool joins(graphemes::Class kind) {
    using namespace graphemes;
    switch (kind) {
      case kOther:
      case kControl:
      case kPictographic:
      case kConsonant:
      case kLV:
      case kLVT: return false;
      default: return true;
    }
  }
};

}  // namespace tokenweir
