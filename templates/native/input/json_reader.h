// The grammar of JSON.
#pragma once

#include <charconv>
#include <cstring>
#include <string>
#include <string_view>

#include "base/utf8_replace.h"
#include "text/characters.h"
#include "values/bigint.h"
#include "values/json.h"
#include "values/json_chunk.h"

namespace tokenweir::templates {

inline constexpr size_t kSlack = 32;  // a chunk, and the longest character before it

// A reader of one JSON text. `Source` makes the texts of strings and the origins of places.
template <class Source>
class Reader {
 public:
  Reader(Workspace& workspace, Source& source, std::string_view text, JsonDialect dialect)
      : workspace_(workspace), source_(source), text_(text), dialect_(dialect) {}

  Value read(uint32_t origin) {
    const Value value = this->value(origin);
    skip_space();
    if (at_ != text_.size()) fail("more than one value");
    return value;
  }

  // Reads the members at the beginning of an object that are complete: a comma, a bracket or, behind a string, a list or an
  // object, the end of the text follows them. Tells whether they are all of the text.
  Value read_members(uint32_t origin, bool& whole) {
    Depth depth(workspace_);
    const Level level(source_, origin);
    Dict* const dict = Dict::make(workspace_, 4);
    Value read = Value::of_dict(dict);
    read.origin = source_.of_scalar(origin);
    skip_space();
    at_++;
    whole = false;
    auto known = source_.state();
    try {
      char next = take('}') ? '}' : ',';
      while (next == ',') {
        known = source_.state();
        if (peek() != '"') break;
        const Entry read_last = member(origin);
        const Kind kind = read_last.value.kind;
        skip_space();
        const bool ends = at_ == text_.size() && (kind == Kind::Text || kind == Kind::List || kind == Kind::Dict);
        next = ends ? '\0' : peek();
        if (!ends && !take(',') && !take('}')) fail("expected , or }");
        dict->set(workspace_, read_last.symbol, read_last.key, read_last.value);
      }
      skip_space();
      whole = next == '}' && at_ == text_.size();
    } catch (const Failure&) {
      source_.back_to(known);
    }
    return read;
  }

 private:
  [[noreturn]] void fail(const char* what) const { value_error("not JSON at byte ", at_, ": ", what); }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
      at_++;
  }

  char peek() {
    skip_space();
    if (at_ == text_.size()) fail("the text ends too early");
    return text_[at_];
  }

  bool take(char symbol) {
    if (peek() != symbol) return false;
    at_++;
    return true;
  }

  bool take_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  Value value(uint32_t origin) {
    workspace_.spend(1);
    const char c = peek();
    if (c == '"') return Value::of_text(string(origin, false));
    if (c == '{') return dict(origin);
    if (c == '[') return list(origin);
    Value v;
    if (c == '-' || is_ascii_digit(static_cast<uint8_t>(c)))
      v = number();
    else if (take_word("true"))
      v = Value::boolean(true);
    else if (take_word("false"))
      v = Value::boolean(false);
    else if (take_word("null"))
      v = Value::none();
    else
      v = special();
    v.origin = source_.of_scalar(origin);
    return v;
  }

  Value special() {
    if (dialect_ != JsonDialect::Strict) {
      if (take_word("NaN")) return Value::of_float(std::nan(""));
      if (take_word("Infinity")) return Value::of_float(HUGE_VAL);
    }
    fail("no value begins here");
  }

  Value number() {
    const size_t begin = at_;
    if (text_[at_] == '-') at_++;
    if (dialect_ != JsonDialect::Strict && take_word("Infinity")) return Value::of_float(-HUGE_VAL);
    const size_t first = at_;
    const auto digits = [&] {
      const size_t start = at_;
      while (at_ < text_.size() && is_ascii_digit(static_cast<uint8_t>(text_[at_]))) at_++;
      if (at_ == start) fail("a digit is missing");
    };
    digits();
    if (text_[first] == '0' && at_ - first > 1) fail("a number begins with 0");
    bool whole = true;
    if (at_ < text_.size() && text_[at_] == '.') {
      whole = false;
      at_++;
      digits();
    }
    if (at_ < text_.size() && (text_[at_] | 0x20) == 'e') {
      whole = false;
      at_++;
      if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) at_++;
      digits();
    }
    const char *const start = text_.data() + begin, *const end = text_.data() + at_;
    if (whole) {
      int64_t integer;
      if (std::from_chars(start, end, integer).ec == std::errc()) return Value::of_int(integer);
      return integer_of(workspace_, text_.substr(begin, at_ - begin));
    }
    return Value::of_float(
        std::strtod(std::string(start, end).c_str(), nullptr));  // from_chars does not tell inf from 0
  }

  Value list(uint32_t origin) {
    Depth depth(workspace_);
    const Level level(source_, origin);
    at_++;
    List* const list = List::make(workspace_, 4);
    Value read = Value::of_list(list);
    read.origin = source_.of_scalar(origin);
    if (take(']')) return read;
    do list->add(workspace_, value(source_.item(origin, list->size)));
    while (take(','));
    if (!take(']')) fail("expected , or ]");
    return read;
  }

  Value dict(uint32_t origin) {
    Depth depth(workspace_);
    const Level level(source_, origin);
    at_++;
    Dict* const dict = Dict::make(workspace_, 4);
    Value read = Value::of_dict(dict);
    read.origin = source_.of_scalar(origin);
    if (take('}')) return read;
    do {
      if (peek() != '"') fail("expected a key");
      const Entry read_last = member(origin);
      dict->set(workspace_, read_last.symbol, read_last.key, read_last.value);
    } while (take(','));
    if (!take('}')) fail("expected , or }");
    return read;
  }

  // A member of the object at a place.
  Entry member(uint32_t origin) {
    Text* const key = string(origin, true);
    Symbol* const symbol = symbol_of(workspace_, key);
    source_.name_key(key, origin, symbol);
    if (!take(':')) fail("expected :");
    return {symbol, Value::of_text(key), value(source_.under(origin, symbol))};
  }

  // The next byte of a string that is not plain: its end, an escape, or a control character. `all` collects high bits.
  size_t special_from(size_t at, uint64_t& all) const {
    for (; at + Chunk::kSize <= text_.size(); at += Chunk::kSize) {
      const Chunk chunk(text_.data() + at);
      const uint64_t found = chunk.special();
      const size_t plain = found ? Chunk::index(found) : Chunk::kSize;
      all |= chunk.high_bits(plain);
      if (found) return at + plain;
    }
    for (; at < text_.size(); at++) {
      const auto c = static_cast<uint8_t>(text_[at]);
      all |= c;
      if (c == '"' || c == '\\' || c < 0x20) return at;
    }
    fail("a string is not closed");
  }

  // The closing quote of a string from a byte inside it on.
  size_t closing_quote(size_t at) const {
    uint64_t all = 0;
    while (text_[at = special_from(at, all)] != '"') {
      const size_t taken = text_[at] == '\\' ? 2 : 1;
      if (taken == 1) check_control();
      if (at + taken > text_.size()) fail("a string is not closed");
      at += taken;
    }
    return at;
  }

  // A string at a place, or a key of the object there.
  Text* string(uint32_t place, bool is_key) {
    const uint32_t origin = is_key ? kFromEngine : place;
    const size_t begin = ++at_;
    uint64_t all = 0;
    const size_t end = special_from(begin, all);
    if (text_[end] != '"') return escaped_string(begin, end, all, place, is_key);
    const bool ascii = !(all & kHighBits);
    if (!ascii) check_utf8(begin, end);
    workspace_.spend_bytes(end - begin);
    at_ = end + 1;
    return source_.plain(begin, end, origin, ascii);
  }

  // A string whose first escape or control character is at `next`; `all` has the high bits before it. It is decoded into
  // the rest of the arena's block: the end is searched for only if it does not fit there.
  Text* escaped_string(size_t begin, size_t next, uint64_t all, uint32_t place, bool is_key) {
    Arena& arena = workspace_.arena;
    const auto rest = arena.rest();
    char* bytes = rest.first;
    size_t room = rest.second;
    bool is_taken = false;
    const auto need = [&](size_t decoded, size_t more) {
      if (decoded + more <= room) return;
      room = decoded + (closing_quote(next) - next) + more;
      char* const larger = arena.array<char>(room);
      if (decoded) std::memcpy(larger, bytes, decoded);  // before, there may be no block at all
      bytes = larger;
      is_taken = true;
    };
    need(0, next - begin + kSlack);
    size_t decoded = next - begin;
    std::memcpy(bytes, text_.data() + begin, decoded);
    while (text_[next] != '"') {
      uint32_t c = static_cast<uint8_t>(text_[next]);
      if (c == '\\') {
        if (next + 2 > text_.size()) fail("a string is not closed");
        at_ = next;
        c = unescape();
      } else {
        check_control();
        at_ = next + 1;
      }
      if (c >= 0xD800 && c < 0xE000) source_.lone(c, place, is_key, {bytes, decoded});
      all |= c >= 0x80 ? kHighBits : 0;
      decoded += utf8_encode(c >= 0xD800 && c < 0xE000 ? 0xFFFD : c, reinterpret_cast<uint8_t*>(bytes + decoded));
      for (next = at_;;) {
        need(decoded, kSlack);
        if (next + Chunk::kSize > text_.size()) {
          const size_t special = special_from(next, all);
          std::memcpy(bytes + decoded, text_.data() + next, special - next);
          decoded += special - next;
          next = special;
          break;
        }
        const Chunk chunk(text_.data() + next);
        chunk.store(bytes + decoded);
        const uint64_t found = chunk.special();
        const size_t plain = found ? Chunk::index(found) : Chunk::kSize;
        all |= chunk.high_bits(plain);
        decoded += plain;
        next += plain;
        if (found) break;
      }
    }
    if (!is_taken) arena.take(decoded);
    const bool ascii = !(all & kHighBits);
    if (!ascii) check_utf8(begin, next);
    workspace_.spend_bytes(next - begin);
    at_ = next + 1;
    return source_.escaped({bytes, decoded}, begin, next, is_key ? kFromEngine : place, ascii);
  }

  void check_control() const {
    if (dialect_ != JsonDialect::Loose) fail("a control character in a string");
  }

  void check_utf8(size_t begin, size_t end) {
    const uint8_t* p = bytes_of(text_) + begin;
    const uint8_t* const last = bytes_of(text_) + end;
    while (p < last) {
      uint64_t word;
      if (last - p >= 8 && (std::memcpy(&word, p, 8), !(word & kHighBits))) {
        p += 8;
        continue;
      }
      const Utf8Start start = utf8_start(p, static_cast<size_t>(last - p));
      if (start.kind != Utf8Start::kCharacter) fail("the text is not UTF-8");
      p += start.length;
    }
  }

  // The character of an escape, or half of a surrogate pair.
  uint32_t unescape() {
    const char c = text_[at_ + 1];
    at_ += 2;
    constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    if (const size_t which = kLetters.find(c); which != kLetters.npos) return static_cast<uint8_t>(kMeanings[which]);
    if (c != 'u') fail("an unknown escape");
    const uint32_t unit = hex();
    if (unit < 0xD800 || unit >= 0xDC00 || text_.substr(at_, 2) != "\\u") return unit;
    const size_t behind = at_;
    at_ += 2;
    const uint32_t low = hex();
    if (low >= 0xDC00 && low < 0xE000) return 0x10000 + ((unit & 0x3FF) << 10 | (low & 0x3FF));
    at_ = behind;
    return unit;
  }

  uint32_t hex() {
    uint32_t unit = 0;
    for (int i = 0; i < 4; i++, at_++) {
      const uint32_t digit = at_ < text_.size() ? digit_value(text_[at_]) : 36;
      if (digit > 15) fail("an escape needs four hexadecimal digits");
      unit = unit << 4 | digit;
    }
    return unit;
  }

  // Tells the source of a list or object while it is read.
  struct Level {
    Level(Source& source, uint32_t origin) : source(source) { source.enter(origin); }
    ~Level() { source.leave(); }
    Source& source;
  };

  Workspace& workspace_;
  Source& source_;
  const std::string_view text_;
  const JsonDialect dialect_;
  size_t at_ = 0;
};

}  // namespace tokenweir::templates
