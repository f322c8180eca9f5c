// The exceptions of the core. module.cpp translates each into a Python class of encode/errors.py.
#pragma once

#include <stdexcept>

namespace tokenweir {

// An inconsistent file: TokenizerFileError.
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
