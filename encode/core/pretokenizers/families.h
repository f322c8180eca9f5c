// What sets the commonest pre-tokenizer patterns apart, for the scanner. Python recognises them (pattern/families.py).
#pragma once

#include <cstdint>

namespace tokenweir {

// How a pattern takes English contractions ('s, 't, 're, 've, 'm, 'll, 'd).
enum class Contractions : uint8_t {
  kNone,
  kLowerCase,  // as a piece, in lower case only
  kAnyCase,    // as a piece
  kSuffix,     // with the letters before it
};

// GPT-2: a space goes with the letters, digits or other characters after it; white space but its last character is one
// piece.
struct Gpt2Rules {
  static constexpr bool kAnyPrefix = false;  // any character but a newline or digit goes with the letters after it
  static constexpr bool kCases = false;      // an upper-case letter after a lower-case one begins a piece
  static constexpr bool kDigitsTakeSpace = true;
  static constexpr int kDigits = 0;           // the longest piece of digits; 0: any
  static constexpr bool kNewlines = false;    // a piece of white space ends with its last newline; other characters take
                                              // the newlines after them along
  static constexpr bool kSlashes = false;     // ... and slashes after those
  static constexpr Contractions kContractions = Contractions::kLowerCase;
};

// cl100k and Llama-3.
struct Cl100kRules : Gpt2Rules {
  static constexpr bool kAnyPrefix = true;
  static constexpr bool kDigitsTakeSpace = false;
  static constexpr int kDigits = 3;
  static constexpr bool kNewlines = true;
  static constexpr Contractions kContractions = Contractions::kAnyCase;
};

// Qwen 2 to 3.5.
struct QwenRules : Cl100kRules {
  static constexpr int kDigits = 1;
};

// o200k and what is made after it.
struct O200kRules : Cl100kRules {
  static constexpr bool kCases = true;
  static constexpr bool kSlashes = true;
  static constexpr Contractions kContractions = Contractions::kSuffix;
};

// Mistral's tekken.
struct TekkenRules : O200kRules {
  static constexpr int kDigits = 1;
  static constexpr Contractions kContractions = Contractions::kNone;
};

}  // namespace tokenweir
