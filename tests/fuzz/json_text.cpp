// The parts of a tokenizer.json that the core reads itself: a vocabulary, a list of merges, a list of strings.
#include "base/json_text.h"

#include "fuzz.h"
#include "vocabulary/merges.h"
#include "vocabulary/token_ids.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tokenweir;
  const std::string_view json = view(data, size);
  or_refused([&] {
    const auto vocabulary = TokenIds::from_json(json);
    if (!vocabulary) return;
    const TokenList& names = vocabulary->names();
    for (size_t id = 0; id < names.size(); id++) {
      if (!vocabulary->given()[id]) continue;
      promised(is_utf8(names[id]), "a token is text");
      promised(vocabulary->find(names[id]) == id, "a token's name leads to its id");
    }
  });
  or_refused([&] {
    const auto merges = Merges::from_json(json);
    if (!merges) return;
    for (size_t i = 0; i < merges->size(); i++) {
      const Merges::Pair pair = (*merges)[i];
      promised(is_utf8(pair.joined()), "a merge is text");
      promised(pair.joined().size() == pair.left.size() + pair.right.size(), "its halves stand together");
    }
  });
  JsonText text(json);
  std::string string;
  int64_t number;
  while (text.string(string) || text.take(',') || text.integer(number)) promised(is_utf8(string), "a string is text");
  return 0;
}
