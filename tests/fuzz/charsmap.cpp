// A precompiled character map, and a text that it is matched with: any map is checked whole or refused, so that a match
// never leaves it.
#include "normalizers/charsmap.h"

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tokenweir;
  if (size < 1) return 0;
  const size_t text_size = std::min<size_t>(data[0] % 64, size - 1);
  const uint8_t* const text = data + 1;
  const std::string_view file = view(text + text_size, size - 1 - text_size);
  or_refused([&] {
    const Charsmap map(file);
    for (size_t at = 0; at < text_size; at++) {
      const size_t left = text_size - at;
      const Charsmap::Rule longest = map.longest(text + at, left), shortest = map.shortest(text + at, left);
      for (const Charsmap::Rule& rule : {longest, shortest}) {
        promised(rule.length <= left, "a rule replaces text that is there");
        promised(is_utf8(rule.replacement), "a replacement is text");
        promised(static_cast<double>(rule.replacement.size()) <=
                     map.growth() * static_cast<double>(std::max<size_t>(rule.length, 1)),
                 "a text grows by no more than is said");
        promised(rule.length == 0 || map.starts(text[at]), "a rule begins with a byte that rules begin with");
      }
      promised(shortest.length <= longest.length && (shortest.length == 0) == (longest.length == 0),
               "the shortest is not longer");
    }
  });
  return 0;
}
