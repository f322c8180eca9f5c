// States that were saved, damaged: they are refused, or the object restored from them stays within its bounds and can be saved.
#include "base/saving.h"
#include "chat_decoder/answer_text.h"
#include "chat_decoder/json_value.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tokenweir;
  Choices choices(data, size);
  const std::string text = choices.bytes(64), state = choices.bytes(512);
  static const auto automaton = std::make_shared<StopAutomaton>(std::vector<std::string>{"ab", "abab", "\nUser:"});
  try {
    Loader from(state);
    JsonValue value = JsonValue::load(from);
    AnswerText<size_t> answer(std::make_shared<StopStrings>(automaton, false), 0, true);
    answer.load(from, 100, [](size_t id) { return id; });
    from.end();
    promised(value.feed(text) <= text.size(), "a value is part of the text");
    value.finish();
    answer.enter(true, false, false);
    answer.add(7, text.size(), true);
    std::string sent, held;
    answer.search(text, sent);
    answer.emit(sent);
    answer.release(held);
    answer.emit(held);
    answer.finish();
    while (answer.ready() > 0) promised(answer.take_id() < 100, "an id is of the vocabulary");
    Saver to;
    value.save(to);
    answer.save(to, [](size_t id) { return id; });
  } catch (const std::invalid_argument& error) {
    promised(*error.what() != '\0', "a refusal says why");
  }
  return 0;
}
