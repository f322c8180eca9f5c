// Any vocabulary, any decoder, any ids: text comes in whole characters; none is given twice or lost by a copy, a prompt
// or a part that is held.
#include "decoders/decode_stream.h"

#include "fuzz.h"

namespace tokenweir {

// The last `When` to choose: of all, or of those that do not ask for the last token.
constexpr size_t kAnyPlace = static_cast<size_t>(When::kNotLast), kNotByTheEnd = static_cast<size_t>(When::kLater);

TextSteps some_steps(Choices& choices, bool tokens, size_t last_when) {
  std::vector<TextStep> steps;
  for (size_t n = choices.number(2); n > 0; n--) {
    const auto when = static_cast<When>(choices.number(last_when));
    switch (choices.number(tokens ? 3 : 1)) {
      case 0: {
        const std::string pattern = some_text(choices, 3);
        steps.push_back(TextStep::replace(pattern.empty() ? "▁" : pattern, some_text(choices, 2), when));
        break;
      }
      case 1:
        steps.push_back(TextStep::strip(choices.coin() ? " " : "▁", choices.number(2), choices.number(2), when));
        break;
      case 2: steps.push_back(TextStep::follow("##")); break;
      default: steps.push_back(TextStep::join());
    }
  }
  return TextSteps(std::move(steps));
}

// Any decoder that the core takes, which are more than encode/components/decoders.py makes. It refuses steps that ask for the last
// token where a token may be bytes; decoders.py never makes these.
Decoding some_decoding(Choices& choices) {
  const auto spelling = static_cast<Spelling>(choices.number(3));
  const bool by_the_end = spelling == Spelling::kText && choices.coin();
  const size_t last_when = by_the_end ? kAnyPlace : kNotByTheEnd;
  TextSteps token = some_steps(choices, true, last_when), run = some_steps(choices, false, last_when);
  TextSteps text = some_steps(choices, false, kAnyPlace);
  return {std::move(token), spelling, std::move(run), std::move(text), static_cast<FirstUntil>(choices.number(2))};
}

}  // namespace tokenweir

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tokenweir;
  Choices choices(data, size);
  Decoding decoding = some_decoding(choices);
  std::vector<std::string> names(1 + choices.number(11));
  for (std::string& name : names)
    name = decoding.spelling == Spelling::kBytes ? choices.bytes(4) : some_text(choices, 3);
  std::vector<bool> given, special;
  for (size_t i = 0; i < names.size(); i++) given.push_back(!choices.coin()), special.push_back(choices.coin());
  std::vector<FixedToken> fixed;
  const auto fix = [&](std::string content, bool bytes) {
    fixed.push_back({static_cast<uint32_t>(choices.number(names.size() - 1)), std::move(content), bytes});
  };
  if (choices.coin()) fix("<eos>", false);
  bool by_the_end = false;
  for (const TextSteps* steps : {&decoding.token, &decoding.run})
    by_the_end |= steps->depends_on(When::kLast) || steps->depends_on(When::kNotLast);
  if (!by_the_end && choices.coin()) fix("\xE6", true);
  const TokenBytes tokens(std::move(decoding), {names.begin(), names.end()}, given, special, fixed);
  const bool whole_runs = choices.coin();
  const DecodeState start(tokens, choices.coin(), whole_runs);

  std::vector<size_t> ids(choices.number(24));
  for (size_t& id : ids) id = choices.number(names.size() - 1);
  const size_t middle = choices.number(ids.size());

  DecodeState state(start);
  std::string all, after;
  for (size_t i = 0; i < ids.size(); i++) {
    if (i == middle) {
      DecodeState copy(state);
      std::string held;
      copy.flush(held);
      promised(is_utf8(held), "what is held ends as text");
      promised(copy.pending() == 0, "a flush holds nothing back");
      if (state.pending() == 0) promised(held.empty(), "where nothing is held, nothing comes");
    }
    const size_t before = all.size();
    state.take(ids[i], all);
    promised(is_utf8(std::string_view(all).substr(before)), "text comes in whole characters");
    if (i >= middle) after += all.substr(before);
  }
  const size_t before = all.size();
  state.flush(all);
  after += all.substr(before);
  promised(is_utf8(all), "all of it is text");

  if (whole_runs) return 0;  // there, what a prompt has begun is given as its own
  DecodeState prompted(start);
  prompted.follow(middle, [&](size_t i) { return ids[i]; });
  std::string rest;
  for (size_t i = middle; i < ids.size(); i++) prompted.take(ids[i], rest);
  prompted.flush(rest);
  promised(rest == after, "after a prompt comes what would have come");
  return 0;
}
