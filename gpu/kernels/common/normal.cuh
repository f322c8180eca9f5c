// The normal form of a text, written in place with gap bytes.
#pragma once

#include <stdint.h>

namespace tokenweir::normal {

constexpr uint32_t kSign = 0x2581;  // the character for a space in a vocabulary

constexpr uint8_t kGap = 0xFF;                                   // which UTF-8 never has
constexpr uint32_t kGaps = 0xFFFFFFFF, kSpaceOnly = 0xFFFFFF20;  // the entries of removed characters and of spaces
constexpr uint32_t kHostOnly = 0xFEFEFEFE;                       // the host must normalize the document
constexpr uint32_t kJoins = 0xFDFDFDFD;  // kept after a character that is kept, or if both have three bytes or more
constexpr uint32_t kSpaceJoins = 0xFCFCFCFC;  // a space there

}  // namespace tokenweir::normal
