// The strings of a GGUF array: any bytes are read or refused; a string lies in the file, after the one before it.
#include "vocabulary/gguf_strings.h"

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tokenweir;
  if (size < 9) return 0;
  Choices choices(data, 9);
  const uint64_t offset = choices.coin() ? choices.number(SIZE_MAX) : 0;
  data += 9, size -= 9;
  or_refused([&] {
    GgufStrings strings(data, size, offset);
    for (uint64_t before = offset;; before = strings.offset()) {
      const std::string_view string = strings.next();
      promised(within(string, view(data, size)), "a string lies in the file");
      promised(strings.offset() == before + 8 + string.size(), "the next string follows");
      if (!is_utf8(string)) strings.not_utf8(string);
    }
  });
  return 0;
}
