// The rules of the commonest pre-tokenizer patterns, for the scanner. Python recognises them (pattern/families.py).
#pragma once

#include <cstdint>

namespace tokenweir {

// The treatment of English contractions ('s, 't, 're, 've, 'm, 'll, 'd).
enum class Contractions : uint8_t {
  kNone,
  kLowerCase,  // a piece, in lower case only
  kAnyCase,    // a piece
  kSuffix,     // joined to the letters before
};

// GPT-2: a space joins the letters, digits or other characters after it; white space except its last character is one
// piece.
struct Gpt2Rules {
  static constexpr bool kAnyPrefix = false;  // any character except a newline or digit joins the letters after it
  static constexpr bool kCases = false;      // an upper-case letter after a lower-case one begins a piece
  static constexpr bool kDigitsTakeSpace = true;
  static constexpr int kDigits = 0;         // the longest piece of digits; 0: unlimited
  static constexpr bool kNewlines = false;  // a piece of white space ends with its last newline; newlines join other
                                            // characters before them
  static constexpr bool kSlashes = false;   // ... and so do slashes after those newlines
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

// o200k and its derivatives.
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
