// The normal form of a text as it stands in the text's own place, with gaps.
#pragma once

#include <stdint.h>

namespace tokenweir::normal {

constexpr uint32_t kSign = 0x2581;  // what stands for a space in a vocabulary

constexpr uint8_t kGap = 0xFF;  // no byte of UTF-8
constexpr uint32_t kGaps = 0xFFFFFFFF, kSpaceOnly = 0xFFFFFF20;  // what a character becomes that goes, or a space
constexpr uint32_t kOdd = 0xFEFEFEFE;    // only the host knows
constexpr uint32_t kJoins = 0xFDFDFDFD;  // it stays, beside a character that stays or if both have three bytes or more

}  // namespace tokenweir::normal
