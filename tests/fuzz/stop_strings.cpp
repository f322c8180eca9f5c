// Stop strings: a text in any parts ends at the stop that a plain search finds, and nothing else is lost.
#include "chat_decoder/stop_strings.h"

#include "fuzz.h"

namespace tokenweir {

// The bounds of the match that completes first; of those that complete together, that of the first stop.
std::pair<size_t, size_t> first_match(const std::vector<std::string>& stops, std::string_view text) {
  for (size_t end = 1; end <= text.size(); end++)
    for (const std::string& stop : stops)
      if (stop.size() <= end && text.substr(end - stop.size(), stop.size()) == stop) return {end - stop.size(), end};
  return {std::string_view::npos, std::string_view::npos};
}

}  // namespace tokenweir

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tokenweir;
  Choices choices(data, size);
  const bool include = choices.coin();
  std::vector<std::string> stops;
  for (size_t n = choices.number(4); n > 0; n--) {
    stops.push_back(choices.bytes(6));
    if (stops.back().empty()) stops.back() = "a";
  }
  const std::string text = choices.bytes(64);
  const auto automaton = std::make_shared<const StopAutomaton>(stops);
  StopStrings search(automaton, include), skimming(automaton, include);
  std::string out, skimmed;
  for (const std::string_view part : cut(text, choices)) {
    search.take(part, 0, out);
    if (search.matched() == nullptr) {
      promised(skimming.skim(part), "what completes no stop can be skimmed");
      promised(skimming.held() == search.held(), "skimming holds the same");
    } else {
      promised(!skimming.skim(part), "a stop is never skimmed");
      break;
    }
  }
  const auto [begin, end] = first_match(stops, text);
  if (end == std::string_view::npos) {
    promised(search.matched() == nullptr, "no stop is made up");
    search.flush(out);
    promised(out == text, "all of the text goes out");
  } else {
    promised(search.matched() != nullptr, "no stop is missed");
    promised(*search.matched() == text.substr(begin, end - begin), "the first stop wins");
    promised(out == std::string_view(text).substr(0, include ? end : begin), "the text goes out up to the stop");
  }
  return 0;
}
