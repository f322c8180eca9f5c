// The state of an answer: saved and restored anywhere, it changes nothing, and bytes that are no state are refused or
// do no harm.
#include "chat_decoder/detokenizer.h"
#include "fuzz.h"

namespace tokenweir {

using Answer = Detokenizer<size_t>;

size_t same(size_t id) { return id; }

void send(Answer& answer, std::string_view text, std::string& out) {
  std::string sent;
  answer.answer().search(text, sent);
  answer.answer().emit(sent);
  out += sent;
}

void take_done(Answer& answer, std::vector<size_t>& done) {
  while (answer.answer().ready() > 0) done.push_back(answer.answer().take_id());
}

// Gives ids to an answer without a splitter until it is over; appends what goes out, and the ids that are done with it.
void feed(Answer& answer, const std::vector<size_t>& ids, std::string& out, std::vector<size_t>& done) {
  for (size_t place = 0; place < ids.size() && answer.answer().stops().matched() == nullptr;) {
    std::string sent, next;
    const auto [end, fed] = answer.feed(
        place, ids.size(), [&](size_t i) { return static_cast<int64_t>(ids[i]); }, [&](size_t i) { return ids[i]; },
        sent, next);
    out += sent;
    if (fed != Answer::Fed::kPassed) send(answer, next, out);
    if (end == place) answer.answer().add(ids[place], 0, false);  // it would end the answer
    place = end == place ? place + 1 : end;
    take_done(answer, done);
  }
  send(answer, answer.unseen(), out);
  take_done(answer, done);
}

void end(Answer& answer, std::string& out, std::vector<size_t>& done) {
  std::string next, held;
  answer.flush(next);
  send(answer, next, out);
  if (answer.answer().end_block(false)) send(answer, "", out);
  answer.answer().release(held);
  answer.answer().emit(held);
  out += held;
  answer.answer().finish();
  take_done(answer, done);
}

std::string saved(const Answer& answer) {
  Saver to;
  answer.save(to, same);
  return std::string(to.bytes());
}

void load(Answer& answer, std::string_view bytes) {
  Loader from(bytes);
  answer.load(from, same);
  from.end();
}

std::vector<size_t> some_ids(Choices& choices, size_t below) {
  std::vector<size_t> ids(choices.number(12));
  for (size_t& id : ids) id = choices.number(below - 1);
  return ids;
}

}  // namespace tokenweir

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tokenweir;
  Choices choices(data, size);
  const auto spelling = choices.coin() ? Spelling::kBytes : Spelling::kFallback;
  std::vector<TextStep> steps;
  if (choices.coin()) steps.push_back(TextStep::replace("▁", " ", When::kAlways));
  if (choices.coin()) steps.push_back(TextStep::strip(" ", choices.number(2), choices.number(2), When::kAlways));
  const std::vector<std::string_view> names = {"a",      "b", "ab", "\xE6", "\x97\xA5", "<0xE6>",
                                               "<0x97>", "▁", " ",  "é",    "xxx",      "\n"};
  const TokenBytes tokens({{}, spelling, {}, TextSteps(steps), FirstUntil::kText}, names,
                          std::vector<bool>(names.size(), true), std::vector<bool>(names.size(), false), {});
  const auto automaton = std::make_shared<const StopAutomaton>(std::vector<std::string>{"aab", "b\n", "xxxxx", "日"});
  const auto rules = std::make_shared<const AnswerRules>(std::vector<int64_t>{11},
                                                         std::unordered_map<int64_t, std::string>{{10, "<x>"}}, false);
  const size_t min_tokens = choices.number(3);
  const std::vector<std::string> tags = {"ab\n", "xxx"};
  const bool include = choices.coin(), search = choices.coin(), drop = choices.coin(), passing = choices.coin(),
             trims = choices.coin();
  const bool whole_runs = choices.coin();
  const auto fresh = [&] {
    AnswerText<size_t> text(std::make_shared<StopStrings>(automaton, include), min_tokens, trims);
    Answer answer(DecodeState(tokens, false, whole_runs), std::move(text), rules, SIZE_MAX);
    answer.answer().enter(search, drop, false);
    return answer;
  };
  const auto pass = [&](Answer& answer) {
    if (passing)
      answer.allow_skip(std::make_shared<SkippableText>("a", false, SkippableText::Tags{tags, tags, {}, {}}, true));
  };

  const std::vector<size_t> first = some_ids(choices, names.size()), rest = some_ids(choices, names.size());
  Answer whole = fresh(), restored = fresh();
  std::string out, again;
  std::vector<size_t> done, done_again;
  pass(whole);
  feed(whole, first, out, done);
  const std::string state = saved(whole);
  load(restored, state);
  promised(saved(restored) == state, "a state that is read is the one that was written");
  pass(restored);
  again = out, done_again = done;
  for (Answer* answer : {&whole, &restored}) {
    std::string& text = answer == &whole ? out : again;
    std::vector<size_t>& ids = answer == &whole ? done : done_again;
    feed(*answer, rest, text, ids);
    end(*answer, text, ids);
  }
  promised(out == again && done == done_again, "a restored answer goes on as if nothing had happened");

  std::string damaged = state;
  for (size_t n = 1 + choices.number(3); n > 0; n--)
    if (!damaged.empty()) damaged[choices.number(damaged.size() - 1)] = static_cast<char>(choices.number(255));
  damaged = damaged.substr(0, choices.coin() ? choices.number(damaged.size()) : damaged.size()) + choices.bytes(16);
  Answer broken = fresh();
  try {
    load(broken, damaged);
    pass(broken);
    feed(broken, rest, out, done);
    end(broken, out, done);
  } catch (const std::logic_error& error) {  // std::invalid_argument among them
    promised(*error.what() != '\0', "a refusal says why");
  }
  return 0;
}
