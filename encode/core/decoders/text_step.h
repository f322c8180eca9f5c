// Decoder steps that transform a stream of text: whole characters in, whole characters out.
//
// A step sees one text at a time: a token, the text of a run of byte tokens, or the whole text. The output does not
// depend on how the text is divided, and the cost is O(1) per byte. A step holds back only what later text can change:
// the start of a pattern, or characters that are stripped if the text ends with them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/common_prefix.h"
#include "base/saving.h"

namespace tokenweir {

// The place in the text of the tokens to which a step applies.
enum class When : uint8_t { kAlways, kFirst, kLater, kLast, kNotLast };

struct Place {
  bool first, last;

  bool is(When when) const {
    switch (when) {
      case When::kFirst: return first;
      case When::kLater: return !first;
      case When::kLast: return last;
      case When::kNotLast: return !last;
      default: return true;
    }
  }
};

// A set of the bytes of a text as 64 bits; bytes that are equal modulo 64 share a bit.
inline uint64_t letters_of(std::string_view text) {
  uint64_t letters = 0;
  for (const char c : text) letters |= uint64_t{1} << (c & 63);
  return letters;
}

// A strip at the start of a text: up to `count` copies of an ASCII character.
struct Stripped {
  char character = 0;
  size_t count = 0;
};

class TextStep {
 public:
  // The state of a step inside a text.
  struct State {
    size_t held = 0;       // bytes of the pattern at the end of the text; or copies of the character to strip
    size_t stripped = 0;   // copies stripped at the start
    bool started = false;  // nothing more is stripped at the beginning
  };

  // Replaces each `pattern`, which is not empty, by `content`, from left to right.
  static TextStep replace(std::string pattern, std::string content, When when) {
    TextStep step(Kind::kReplace, when);
    step.pattern_ = std::move(pattern);
    step.content_ = std::move(content);
    step.border_ = borders(step.pattern_);
    return step;
  }

  // Strips `character`: up to `start` copies at the start, and then up to `stop` copies at the end.
  static TextStep strip(std::string character, size_t start, size_t stop, When when) {
    TextStep step(Kind::kStrip, when);
    step.pattern_ = std::move(character);
    step.start_ = start;
    step.stop_ = stop;
    return step;
  }

  // Removes `prefix` from a token that begins with it, and puts a space before any other. For whole tokens only.
  static TextStep follow(std::string prefix) {
    TextStep step(Kind::kFollow, When::kLater);
    step.pattern_ = std::move(prefix);
    return step;
  }

  // Puts a space before a token. For whole tokens only.
  static TextStep join() { return TextStep(Kind::kJoin, When::kLater); }

  When when() const { return when_; }

  // The bytes without which a whole text stays unchanged.
  uint64_t needs() const { return kind_ == Kind::kReplace ? letters_of(pattern_) : 0; }

  // Whether nothing is held, and all later text stays unchanged.
  bool is_idle(const State& state) const { return kind_ == Kind::kStrip && stop_ == 0 && state.started; }

  // Whether the step only strips an ASCII character at the start of a text.
  bool strips_begin(Stripped& stripped) const {
    if (kind_ != Kind::kStrip || when_ != When::kAlways || stop_ > 0 || pattern_.size() != 1) return false;
    stripped = {pattern_[0], start_};
    return true;
  }

  // Whether the output may depend on earlier text, and not only on whether there was any.
  bool depends_on_history() const { return kind_ != Kind::kStrip || stop_ > 0; }

  // An upper bound for the factor by which a text grows.
  double growth() const {
    if (kind_ != Kind::kReplace) return 1;
    return std::max(1.0, static_cast<double>(content_.size()) / static_cast<double>(pattern_.size()));
  }

  void save(const State& state, Saver& to) const {
    to.number(state.held);
    to.number(state.stripped);
    to.number(state.started);
  }

  State load(Loader& from) const {
    State state;
    state.held = from.number(kind_ == Kind::kReplace ? pattern_.size() - 1 : stop_);
    state.stripped = from.number(start_);
    state.started = from.flag();
    return state;
  }

  size_t pending(const State& state) const { return kind_ == Kind::kStrip ? state.held * pattern_.size() : state.held; }

  // Takes the next part of the text.
  void feed(std::string_view text, State& state, std::string& out) const {
    switch (kind_) {
      case Kind::kReplace: return replace(text, state, out);
      case Kind::kStrip: return strip(text, state, out);
      case Kind::kFollow:
        if (text.substr(0, pattern_.size()) == pattern_) {
          out += text.substr(pattern_.size());
          return;
        }
        [[fallthrough]];
      case Kind::kJoin: out += ' '; out += text;
    }
  }

  // Ends the text. The count of characters stripped at its start is kept.
  void end(State& state, std::string& out) const {
    if (kind_ == Kind::kReplace) out.append(pattern_, 0, state.held);
    state.held = 0;
  }

 private:
  enum class Kind : uint8_t { kReplace, kStrip, kFollow, kJoin };

  TextStep(Kind kind, When when) : kind_(kind), when_(when) {}

  void replace(std::string_view text, State& state, std::string& out) const {
    if (state.held == 0 && text.find(pattern_[0]) == std::string_view::npos) {
      out += text;
      return;
    }
    for (const char c : text) {
      while (state.held > 0 && pattern_[state.held] != c) {
        const size_t kept = border_[state.held];
        out.append(pattern_, 0, state.held - kept);
        state.held = kept;
      }
      if (pattern_[state.held] != c) {
        out += c;
      } else if (++state.held == pattern_.size()) {
        out += content_;
        state.held = 0;
      }
    }
  }

  void strip(std::string_view text, State& state, std::string& out) const {
    const size_t n = pattern_.size();
    if (!state.started) {
      for (; state.stripped < start_ && text.substr(0, n) == pattern_; state.stripped++) text.remove_prefix(n);
      state.started = state.stripped == start_ || !text.empty();
    }
    if (stop_ == 0) {
      out += text;
      return;
    }
    size_t tail = 0;  // copies of the character that the text ends with
    while (text.size() >= n && text.substr(text.size() - n) == pattern_) text.remove_suffix(n), tail++;
    if (!text.empty()) {
      for (; state.held > 0; state.held--) out += pattern_;
      out += text;
    }
    for (state.held += tail; state.held > stop_; state.held--) out += pattern_;
  }

  Kind kind_;
  When when_;
  std::string pattern_, content_;
  size_t start_ = 0, stop_ = 0;
  std::vector<size_t> border_;
};

// A sequence of steps.
class TextSteps {
 public:
  using States = std::vector<TextStep::State>;

  TextSteps() = default;
  explicit TextSteps(std::vector<TextStep> steps) : steps_(std::move(steps)) {}

  bool empty() const { return steps_.empty(); }
  size_t size() const { return steps_.size(); }

  bool depends_on(When when) const {
    for (const TextStep& step : steps_)
      if (step.when() == when) return true;
    return false;
  }

  bool depend_on_history() const {
    for (const TextStep& step : steps_)
      if (step.depends_on_history()) return true;
    return false;
  }

  double growth() const {
    double growth = 1;
    for (const TextStep& step : steps_) growth *= step.growth();
    return growth;
  }

  bool are_idle(const States& states) const {
    for (size_t i = 0; i < steps_.size(); i++)
      if (!steps_[i].is_idle(states[i])) return false;
    return true;
  }

  // Whether the steps only strip an ASCII character at the start, or do nothing.
  bool strip_begin(Stripped& stripped) const {
    return steps_.empty() || (steps_.size() == 1 && steps_[0].strips_begin(stripped));
  }

  // `states` may also be empty.
  size_t pending(const States& states) const {
    size_t bytes = 0;
    for (size_t i = 0; i < states.size(); i++) bytes += steps_[i].pending(states[i]);
    return bytes;
  }

  States begin() const { return States(steps_.size()); }

  // `states` may also be empty.
  void save(const States& states, Saver& to) const {
    to.number(states.size());
    for (size_t i = 0; i < states.size(); i++) steps_[i].save(states[i], to);
  }

  States load(Loader& from) const {
    States states(from.number(steps_.size()));
    check_state(states.empty() || states.size() == steps_.size(), "it is of another decoder");
    for (size_t i = 0; i < states.size(); i++) states[i] = steps_[i].load(from);
    return states;
  }

  // Takes the next part of a text and, with `end`, ends it.
  void feed(std::string_view text, Place place, bool end, States& states, std::string& out) const {
    std::string from(text), to;
    for (size_t i = 0; i < steps_.size(); i++) {
      if (!place.is(steps_[i].when())) continue;
      to.clear();
      steps_[i].feed(from, states[i], to);
      if (end) steps_[i].end(states[i], to);
      from.swap(to);
    }
    out += from;
  }

  // Transforms a whole text.
  std::string apply(std::string_view text, Place place) const {
    std::string from(text), to;
    uint64_t letters = letters_of(from);
    for (const TextStep& step : steps_) {
      if (!place.is(step.when()) || (step.needs() & ~letters)) continue;
      TextStep::State state;
      to.clear();
      step.feed(from, state, to);
      step.end(state, to);
      from.swap(to);
      letters = letters_of(from);
    }
    return from;
  }

 private:
  std::vector<TextStep> steps_;
};

}  // namespace tokenweir
