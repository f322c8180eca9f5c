// A SentencePiece model: any bytes are read or refused, and what is read lies in the file.
#include "vocabulary/sentencepiece_file.h"

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tokenweir;
  const std::string_view file = view(data, size);
  or_refused([&] {
    const SentencePieceFile read(file);
    promised(read.scores.size() == read.pieces.size() && read.types.size() == read.pieces.size(),
             "a score and a type each");
    for (const std::string_view piece : read.pieces)
      promised(within(piece, file) && is_utf8(piece), "a piece is text of the file");
    size_t after = 0;
    for (const auto& [begin, end] : read.rest) {
      promised(after <= begin && begin < end && end <= file.size(), "the rest is in order");
      after = end;
    }
  });
  return 0;
}
