// What the core throws. module.cpp turns each into the Python class of the same meaning in encode/errors.py.
#pragma once

#include <stdexcept>

namespace tokenweir {

// A file that contradicts itself: TokenizerFileError.
struct FileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A construct that cannot be reproduced exactly: UnsupportedTokenizerError.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A token id outside the vocabulary: TokenIdError.
struct BadTokenId : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace tokenweir
