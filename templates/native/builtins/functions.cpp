// Functions that templates may call by name.

#include "evaluate/evaluator.h"
#include "values/filter.h"
#include "values/text_edit.h"

namespace tokenweir::templates {
namespace {

constexpr int64_t kLongestRange = 100'000;

Value range(Evaluator& evaluator, const Arguments& arguments) {
  const Bound bound = bind("range", {{kPlaceOnly, kPlaceOnly, kPlaceOnly}, 1}, arguments);
  const bool one = bound[1].is_missing();
  const int64_t start = one ? 0 : integer_argument(bound[0], "range"),
                stop = integer_argument(bound[one ? 0 : 1], "range");
  const int64_t step = integer_or(bound[2], 1, "range");
  if (!step) value_error("range() arg 3 must not be zero");
  const __int128 distance = step > 0 ? static_cast<__int128>(stop) - start : static_cast<__int128>(start) - stop;
  const __int128 stride = step > 0 ? step : -static_cast<__int128>(step);
  const __int128 count = distance > 0 ? (distance - 1) / stride + 1 : 0;
  if (count > kLongestRange)
    throw Failure("OverflowError: Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).");
  Workspace& workspace = evaluator.workspace;
  workspace.spend(static_cast<uint64_t>(count) / 4);
  auto* const made = static_cast<Range*>(workspace.arena.take(sizeof(Range)));
  made->size = static_cast<uint32_t>(count);
  made->capacity = made->size + 1;
  made->items = workspace.arena.array<Value>(made->capacity);
  made->start = start;
  made->stop = stop;
  made->step = step;
  for (uint32_t i = 0; i < made->size; i++) made->items[i] = Value::of_int(start + i * step);
  return Value::of(Kind::Range, &Value::range, made);
}

// dict(mapping or pairs, **named)
Dict* new_dict(Evaluator& evaluator, const char* what, const Arguments& arguments) {
  Workspace& workspace = evaluator.workspace;
  if (arguments.count > 1) type_error(what, " expected at most 1 argument, got ", arguments.count);
  Dict* const dict = Dict::make(workspace, arguments.named_count + 1);
  if (arguments.count && arguments.positional[0].kind == Kind::Dict) {
    const Dict& other = *arguments.positional[0].dict;
    for (const Entry& entry : other) dict->set(workspace, entry.key, entry.value);
    workspace.spend(other.size);
  } else if (arguments.count) {
    const List& pairs = *evaluator.to_list(arguments.positional[0]);
    for (uint32_t i = 0; i < pairs.size; i++) {
      workspace.spend(1);
      const List& pair = *evaluator.to_list(pairs.items[i]);
      if (pair.size != 2)
        value_error("dictionary update sequence element #", i, " has length ", pair.size, "; 2 is required");
      check_hashable(workspace, pair.items[0]);
      dict->set(workspace, pair.items[0], pair.items[1]);
    }
  }
  arguments.add_named_to(workspace, *dict);
  return dict;
}

Value dict(Evaluator& evaluator, const Arguments& arguments) {
  return Value::of_dict(new_dict(evaluator, "dict", arguments));
}

Value make_namespace(Evaluator& evaluator, const Arguments& arguments) {
  Value value = Value::of_dict(new_dict(evaluator, "namespace", arguments));
  for (const Entry& entry : *value.dict)
    if (entry.symbol) check_namespace_name(*entry.symbol);
  value.kind = Kind::Namespace;
  return value;
}

Value cycler_of(Workspace& workspace, Kind kind, const Value* items, uint32_t count) {
  return Value::of(kind, &Value::cycler, workspace.arena.make<Cycler>(Cycler{List::of(workspace, items, count), 0}));
}

Value cycler(Evaluator& evaluator, const Arguments& arguments) {
  if (!arguments.count) throw Failure("RuntimeError: at least one item has to be provided");
  if (arguments.named_count) type_error("cycler() takes no keyword arguments");
  return cycler_of(evaluator.workspace, Kind::Cycler, arguments.positional, arguments.count);
}

Value joiner(Evaluator& evaluator, const Arguments& arguments) {
  const Bound bound = bind("joiner", {{"sep"}}, arguments);
  const Value separator = bound[0].is_missing() ? Value::of_text(evaluator.workspace.engine(", ")) : bound[0];
  return cycler_of(evaluator.workspace, Kind::Joiner, &separator, 1);
}

Value lipsum(Evaluator&, const Arguments&) { throw Failure("the function 'lipsum' is not supported"); }

Value raise_exception(Evaluator& evaluator, const Arguments& arguments) {
  const Bound bound = bind("raise_exception", {{"message"}, 1}, arguments);
  throw Failure(std::string(evaluator.workspace.flat(to_text(evaluator.workspace, bound[0]))));
}

// --- strftime, in English

constexpr std::string_view kDays[] = {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"};
constexpr std::string_view kMonths[] = {"January", "February", "March",     "April",   "May",      "June",
                                        "July",    "August",   "September", "October", "November", "December"};

std::string padded(int number, size_t width, char fill = '0') {
  std::string digits = std::to_string(number);
  return digits.size() < width ? std::string(width - digits.size(), fill) + digits : digits;
}

// Week numbers of ISO 8601 and the year that they belong to.
std::pair<int, int> iso_week(const Clock& clock) {
  const auto weeks_in = [](int year) {
    const auto last_day = [](int y) { return (y + y / 4 - y / 100 + y / 400) % 7; };
    return last_day(year) == 4 || last_day(year - 1) == 3 ? 53 : 52;
  };
  const int week = (clock.yearday - (clock.weekday + 1) + 10) / 7;
  if (week < 1) return {clock.year - 1, weeks_in(clock.year - 1)};
  if (week > weeks_in(clock.year)) return {clock.year + 1, 1};
  return {clock.year, week};
}

std::string strftime(std::string_view format, const Clock& clock) {
  std::string out;
  const int hour12 = clock.hour % 12 ? clock.hour % 12 : 12;
  for (size_t at = 0; at < format.size(); at++) {
    if (format[at] != '%' || at + 1 == format.size()) {
      out += format[at];
      continue;
    }
    char code = format[++at];
    const bool bare = code == '-' && at + 1 < format.size();  // glibc: without zeros before
    if (bare) code = format[++at];
    const auto number = [&](int value, size_t width, char fill = '0') { out += padded(value, bare ? 0 : width, fill); };
    switch (code) {
      case 'A': out += kDays[clock.weekday]; break;
      case 'a': out += kDays[clock.weekday].substr(0, 3); break;
      case 'B': out += kMonths[clock.month - 1]; break;
      case 'b':
      case 'h': out += kMonths[clock.month - 1].substr(0, 3); break;
      case 'C': number(clock.year / 100, 2); break;
      case 'c': out += strftime("%a %b %e %H:%M:%S %Y", clock); break;
      case 'D':
      case 'x': out += strftime("%m/%d/%y", clock); break;
      case 'd': number(clock.day, 2); break;
      case 'e': number(clock.day, 2, ' '); break;
      case 'F': out += strftime("%Y-%m-%d", clock); break;
      case 'f': out += padded(clock.microsecond, 6); break;
      case 'G': out += std::to_string(iso_week(clock).first); break;
      case 'g': number(iso_week(clock).first % 100, 2); break;
      case 'H': number(clock.hour, 2); break;
      case 'I': number(hour12, 2); break;
      case 'j': number(clock.yearday, 3); break;
      case 'k': number(clock.hour, 2, ' '); break;
      case 'l': number(hour12, 2, ' '); break;
      case 'M': number(clock.minute, 2); break;
      case 'm': number(clock.month, 2); break;
      case 'n': out += '\n'; break;
      case 'P': out += clock.hour < 12 ? "am" : "pm"; break;
      case 'p': out += clock.hour < 12 ? "AM" : "PM"; break;
      case 'R': out += strftime("%H:%M", clock); break;
      case 'r': out += strftime("%I:%M:%S %p", clock); break;
      case 'S': number(clock.second, 2); break;
      case 'T':
      case 'X': out += strftime("%H:%M:%S", clock); break;
      case 't': out += '\t'; break;
      case 'U': number((clock.yearday + 6 - (clock.weekday + 1) % 7) / 7, 2); break;
      case 'u': number(clock.weekday + 1, 1); break;
      case 'V': number(iso_week(clock).second, 2); break;
      case 'W': number((clock.yearday + 6 - clock.weekday) / 7, 2); break;
      case 'w': number((clock.weekday + 1) % 7, 1); break;
      case 'Y': out += std::to_string(clock.year); break;
      case 'y': number(clock.year % 100, 2); break;
      case 'Z':
      case 'z': break;  // a naive time has no zone
      case '%': out += '%'; break;
      default: value_error("strftime_now does not know the code '%", code, "'");
    }
  }
  return out;
}

Value strftime_now(Evaluator& evaluator, const Arguments& arguments) {
  const Bound bound = bind("strftime_now", {{"format"}, 1}, arguments);
  const std::string_view format = evaluator.workspace.flat(text_argument(bound[0], "format"));
  evaluator.workspace.spend(format.size());
  // The format is the template's, and so is the date that it writes.
  const uint32_t origin = bound[0].text->is_leaf() ? bound[0].text->origin : kFromEngine;
  return Value::of_text(evaluator.workspace.copy(strftime(format, evaluator.clock), origin, 0, true));
}

constexpr Function kFunctions[] = {
    {"cycler", cycler},
    {"dict", dict},
    {"joiner", joiner},
    {"lipsum", lipsum},
    {"namespace", make_namespace},
    {"raise_exception", raise_exception},
    {"range", range},
    {"strftime_now", strftime_now},
};

}  // namespace

const Function* find_function(std::string_view name) { return find_named(kFunctions, name); }

}  // namespace tokenweir::templates
