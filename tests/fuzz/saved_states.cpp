// States that were saved, damaged: they are refused, or what goes on from them stays within its bounds and saves itself.
#include "base/saving.h"
#include "fuzz.h"
#include "stream/json_value.h"
#include "stream/pending_ids.h"
#include "stream/stop_strings.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tokenweir;
  Choices choices(data, size);
  const std::string text = choices.bytes(64), state = choices.bytes(512);
  static const auto automaton = std::make_shared<StopAutomaton>(std::vector<std::string>{"ab", "abab", "\nUser:"});
  try {
    Loader from(state);
    JsonValue value = JsonValue::load(from);
    StopStrings stops(automaton, false);
    stops.load(from);
    auto pending = PendingIds<size_t>::load(from, 100, [](size_t id) { return id; });
    from.end();
    promised(value.feed(text) <= text.size(), "a value is part of the text");
    value.finish();
    std::string out;
    stops.take(text, 0, out);
    stops.flush(out);
    pending.add(7, text.size(), true);
    pending.send(text.size());
    pending.finish();
    while (pending.ready() > 0) promised(pending.take() < 100, "an id is of the vocabulary");
    Saver to;
    value.save(to);
    stops.save(to);
  } catch (const std::invalid_argument& error) {
    promised(*error.what() != '\0', "a refusal says why");
  }
  return 0;
}
