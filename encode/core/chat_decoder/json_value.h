// Incremental check of one JSON value: the arguments of a tool call, while a model writes them.
//
// The grammar is that of RFC 8259 and nothing more: no NaN, no comments, no control characters in strings. So a value
// that is done can be read by any JSON parser. The text is not stored: the state is some 50 bytes, with one bit a level
// of objects and arrays, and is cheap to copy. The caller ensures that strings are UTF-8.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/saving.h"
#include "base/utf8.h"
#include "base/utf8_replace.h"

namespace tokenweir {

class JsonValue {
 public:
  static constexpr size_t kMaxDepth = 128;  // levels; Python's own parser fails at about a thousand

  enum class Failure : uint8_t { kNone, kCharacter, kDepth, kUnclosed };

  // Takes text until the value is done or wrong; returns how many bytes of it belong to the value.
  size_t feed(std::string_view text) {
    size_t at = 0;
    while (at < text.size() && !done_ && failure_ == Failure::kNone) {
      if (take(text[at])) {
        at++;
      } else if (failure_ == Failure::kCharacter) {
        wrong_ = text.substr(at, utf8_length(static_cast<uint8_t>(text[at])));
      }
    }
    return at;
  }

  // Takes text if the value is valid and unfinished behind all of it; otherwise takes nothing and returns false.
  bool pass(std::string_view text) {
    JsonValue next = *this;
    if (next.feed(text) < text.size() || next.done_ || next.failure_ != Failure::kNone) return false;
    *this = next;
    return true;
  }

  // Takes the end of the text, which ends a number and leaves anything else unfinished.
  void finish() {
    if (number_may_end() && depth_ == 0)
      done_ = true;
    else if (!done_ && failure_ == Failure::kNone)
      failure_ = Failure::kUnclosed;
  }

  // Whether the value is complete. A number is complete when another character or the end of the text has come.
  bool done() const { return done_; }

  Failure failure() const { return failure_; }
  const std::string& wrong() const { return wrong_; }  // the character that cannot stand where it does

  void save(Saver& to) const {
    to.number(static_cast<uint64_t>(state_));
    to.number(static_cast<uint64_t>(failure_));
    to.number(done_);
    to.number(key_);
    to.number(left_);
    to.text(word_);
    to.number(depth_);
    for (size_t level = 0; level < depth_; level++) to.number(objects_[level]);
    to.text(wrong_);
  }

  static JsonValue load(Loader& from) {
    JsonValue value;
    value.state_ = static_cast<State>(from.number(static_cast<size_t>(State::kExponent)));
    value.failure_ = static_cast<Failure>(from.number(static_cast<size_t>(Failure::kUnclosed)));
    value.done_ = from.flag();
    value.key_ = from.flag();
    value.left_ = static_cast<uint8_t>(from.number(4));
    const std::string_view word = from.text();
    for (const char* rest : {"rue", "alse", "ull"})
      for (; *rest != '\0'; rest++)
        if (word == rest) value.word_ = rest;
    value.depth_ = from.number(kMaxDepth);
    for (size_t level = 0; level < value.depth_; level++) value.objects_[level] = from.flag();
    value.wrong_ = from.text();
    check_state(value.holds() && word == value.word_ && value.wrong_.size() <= 4 && is_utf8(value.wrong_),
                "no JSON can be so");
    return value;
  }

  // The place in which `wrong` cannot stand.
  const char* where() const {
    return state_ == State::kString                            ? "a string"
           : state_ == State::kEscape || state_ == State::kHex ? "a JSON escape"
                                                               : "the JSON";
  }

 private:
  enum class State : uint8_t {
    kValue,
    kValueOrEnd,
    kKey,
    kKeyOrEnd,
    kColon,
    kCommaOrEnd,
    kString,
    kEscape,
    kHex,
    kWord,
    kMinus,
    kZero,
    kInteger,
    kPoint,
    kFraction,
    kE,
    kSign,
    kExponent,
  };

  // Whether some text could have led here, as far as the next character relies on it.
  bool holds() const {
    const bool object = depth_ > 0 && objects_[depth_ - 1];
    switch (state_) {
      case State::kKey:
      case State::kKeyOrEnd:
      case State::kColon: return object;
      case State::kValueOrEnd: return depth_ > 0 && !object;
      case State::kWord: return *word_ != '\0';
      case State::kHex:
        if (left_ == 0) return false;
        [[fallthrough]];
      case State::kString:
      case State::kEscape: return object || !key_;
      default: return !done_ || depth_ == 0;
    }
  }

  // Takes one character, if it can. One that cannot stand there either ends a number, which sees to the state and
  // leaves the character to be looked at again, or is a failure.
  bool take(char c) {
    switch (state_) {
      case State::kString:
        if (c == '"') return key_ ? go(State::kColon) : end();
        if (c == '\\') return go(State::kEscape);
        return static_cast<uint8_t>(c) >= 0x20 || fail();
      case State::kEscape:
        if (c == 'u') return go_hex();
        return std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos ? go(State::kString) : fail();
      case State::kHex:
        if (!digit(c) && !(c >= 'a' && c <= 'f') && !(c >= 'A' && c <= 'F')) return fail();
        return --left_ > 0 || go(State::kString);
      case State::kWord:
        if (c != *word_) return fail();
        return *++word_ != '\0' || end();
      case State::kMinus: return c == '0' ? go(State::kZero) : digit(c) ? go(State::kInteger) : fail();
      case State::kZero:
      case State::kInteger:
        if (digit(c) && state_ == State::kInteger) return true;
        return c == '.' ? go(State::kPoint) : c == 'e' || c == 'E' ? go(State::kE) : end_number();
      case State::kPoint: return digit(c) ? go(State::kFraction) : fail();
      case State::kFraction: return digit(c) || (c == 'e' || c == 'E' ? go(State::kE) : end_number());
      case State::kE:
        if (c == '+' || c == '-') return go(State::kSign);
        [[fallthrough]];
      case State::kSign: return digit(c) ? go(State::kExponent) : fail();
      case State::kExponent: return digit(c) || end_number();
      default: return c == ' ' || c == '\t' || c == '\n' || c == '\r' || between(c);
    }
  }

  // Takes a character between strings, numbers and words.
  bool between(char c) {
    const bool object = depth_ > 0 && objects_[depth_ - 1];
    switch (state_) {
      case State::kKeyOrEnd:
        if (c == '}') return close();
        [[fallthrough]];
      case State::kKey: key_ = true; return c == '"' ? go(State::kString) : fail();
      case State::kColon: return c == ':' ? go(State::kValue) : fail();
      case State::kCommaOrEnd:
        if (c == ',') return go(object ? State::kKey : State::kValue);
        return depth_ > 0 && c == (object ? '}' : ']') ? close() : fail();
      case State::kValueOrEnd:
        if (c == ']') return close();
        [[fallthrough]];
      default: return begin(c);
    }
  }

  bool begin(char c) {
    key_ = false;
    switch (c) {
      case '"': return go(State::kString);
      case '{': return open(true);
      case '[': return open(false);
      case '-': return go(State::kMinus);
      case '0': return go(State::kZero);
      case 't': return go_word("rue");
      case 'f': return go_word("alse");
      case 'n': return go_word("ull");
      default: return digit(c) ? go(State::kInteger) : fail();
    }
  }

  bool open(bool object) {
    if (depth_ == kMaxDepth) {
      failure_ = Failure::kDepth;
      return false;
    }
    objects_[depth_++] = object;
    return go(object ? State::kKeyOrEnd : State::kValueOrEnd);
  }

  bool close() {
    depth_--;
    return end();
  }

  bool go(State state) {
    state_ = state;
    return true;
  }

  bool go_word(const char* rest) {
    word_ = rest;
    return go(State::kWord);
  }

  bool go_hex() {
    left_ = 4;
    return go(State::kHex);
  }

  bool end() {
    done_ = depth_ == 0;
    return go(State::kCommaOrEnd);
  }

  // The character after a number is not taken.
  bool end_number() {
    end();
    return false;
  }

  bool fail() {
    failure_ = Failure::kCharacter;
    return false;
  }

  bool number_may_end() const {
    return state_ == State::kZero || state_ == State::kInteger || state_ == State::kFraction ||
           state_ == State::kExponent;
  }

  static bool digit(char c) { return c >= '0' && c <= '9'; }

  State state_ = State::kValue;
  Failure failure_ = Failure::kNone;
  bool done_ = false;
  bool key_ = false;                // the string that is being read is a key
  uint8_t left_ = 0;                // digits of an escape that are to come
  const char* word_ = "";           // what is to come of a word
  size_t depth_ = 0;                // how many objects and arrays are open
  std::bitset<kMaxDepth> objects_;  // which of them are objects
  std::string wrong_;
};

}  // namespace tokenweir
