// The contents of all ids of a vocabulary, in the layout of kernels (device_content.h).
//
// Kernels concatenate the bytes of tokens. They support a different form of the first token, and a character that is
// stripped at the start of the text. Decoders that do more are refused, as are those where concatenated bytes are
// ambiguous: two runs of bytes with an empty token between them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/errors.h"
#include "decoders/decoder.h"
#include "gpu_tables/device_content.h"

namespace tokenweir {

struct DeviceContents {
  std::vector<uint8_t> bytes;
  std::vector<Content> contents;  // by id
  std::vector<Content> first;     // by id, as the first token of a text; empty if that makes no difference
  Stripped stripped;              // at the start of the text

  DeviceContents(const TokenBytes& tokens, bool skip_special) {
    check_steps(tokens);
    bool may_be_bytes = false, may_be_empty = false;
    for (size_t id = 0; id < tokens.size(); id++) {
      if (!tokens.given(id) || (skip_special && tokens.special(id))) {
        contents.push_back({0, Content::kSkipped});
        if (tokens.first_differs()) first.push_back(contents.back());
        continue;
      }
      const std::string_view content = tokens.content(id);
      contents.push_back(put(content, 0));
      may_be_bytes |= tokens.is_bytes(id);
      may_be_empty |= content.empty();
      if (!tokens.first_differs()) continue;
      const auto [begun, is_bytes] = tokens.content_at(id, {true, false});
      const bool stays = tokens.stays_first(id, begun, is_bytes);
      first.push_back(begun == content && !stays ? contents.back() : put(begun, stays ? Content::kStaysFirst : 0));
    }
    if (may_be_bytes && may_be_empty && !tokens.all_bytes())
      throw Unsupported("a decoder of bytes that an empty token divides");
  }

 private:
  void check_steps(const TokenBytes& tokens) {
    if (tokens.last_differs()) throw Unsupported("a decoder that asks for the last token");
    if (!tokens.run_steps().empty()) throw Unsupported("a decoder that changes the text of a run of bytes");
    if (!tokens.text_steps().strip_begin(stripped))
      throw Unsupported("a decoder that changes the whole text by more than what it takes from its beginning");
  }

  Content put(std::string_view content, uint32_t flags) {
    if (content.size() > Content::kMaxSize)
      throw Unsupported("a token of " + std::to_string(content.size()) + " bytes; at most " +
                        std::to_string(Content::kMaxSize) + " are possible");
    if (bytes.size() + content.size() > UINT32_MAX) throw Unsupported("tokens of more than 4 GiB");
    const auto begin = static_cast<uint32_t>(bytes.size());
    bytes.insert(bytes.end(), content.begin(), content.end());
    return {begin, static_cast<uint32_t>(content.size()) | flags};
  }
};

}  // namespace tokenweir
