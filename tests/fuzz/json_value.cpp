// A JSON value that comes in parts: however it is cut, as much of the text belongs to it, and it ends the same.
#include "chat_decoder/json_value.h"

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tokenweir;
  Choices choices(data, size);
  const std::string text = choices.bytes(512);
  JsonValue whole, parts, passed;
  const size_t length = whole.feed(text);
  promised(length <= text.size(), "a value is part of the text");
  promised(length == text.size() || whole.done() || whole.failure() != JsonValue::Failure::kNone,
           "it goes on or it ends");
  size_t taken = 0;
  bool passing = true;
  for (const std::string_view part : cut(text, choices)) {
    passing = passing && passed.pass(part);
    const size_t before = taken;
    taken += parts.feed(part);
    if (passing)
      promised(taken == before + part.size() && !parts.done(), "what passes is of a value that goes on");
    else
      promised(parts.done() || parts.failure() != JsonValue::Failure::kNone, "what goes on passes");
    if (parts.done() || parts.failure() != JsonValue::Failure::kNone) break;
  }
  promised(taken == length, "as much belongs to it");
  whole.finish();
  parts.finish();
  promised(whole.done() == parts.done() && whole.failure() == parts.failure(), "it ends the same");
  return 0;
}
