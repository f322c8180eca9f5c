// Expressions and statements that are put together by the fuzzer's bytes, so that most of them parse, over JSON that it
// makes up as well.
#include "template.h"

namespace {

using namespace tokenweir;

// The parts of a text between semicolons.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t end; (end = text.find("; ")) != std::string_view::npos; text.remove_prefix(end + 2))
    parts.push_back(text.substr(0, end));
  parts.push_back(text);
  return parts;
}

const std::vector<std::string_view> kAtoms = split(
    "a; b; c.x; c; l; l[0]; zz; ''; 'é😀'; 'a,b'; 1; -2; 0; 2.5; true; none; []; {}; (1, 'x'); [a, l]; {'k': a}; "
    "range(3); namespace(x=a); 2**70; loop; a[1:]; l[::-1]; b['items']; c.items(); ' x '");
const std::vector<std::string_view> kFilters = split(
    "upper; lower; title; capitalize; trim; length; list; join('-'); tojson; tojson(indent=1); string; safe; e; "
    "first; last; reverse; sort; unique; map('upper'); select; reject('none'); items; dictsort; default('d'); int; "
    "float; round(1); abs; sum; min; max; batch(2, 0); slice(2); groupby('x'); indent(2, true); replace('a', 'bb'); "
    "map(attribute='x.y', default=1); selectattr('x'); tojson(ensure_ascii=true, sort_keys=true); center(9); "
    "truncate(3); wordcount; format(1); from_json; attr('x'); count; sort(reverse=true, attribute='x')");
const std::vector<std::string_view> kMethods = split(
    "upper(); lower(); title(); strip(); strip('a '); split(); split(',', 1); rsplit('a'); splitlines(true); "
    "partition('a'); replace('', '-', 2); startswith(('a', 'b')); find('a'); count(''); join(l); format(a, x=b); "
    "removeprefix('a'); zfill(5); center(7, '*'); expandtabs(3); get('x'); items(); keys(); swapcase(); casefold(); "
    "index('a'); isdigit(); rjust(4)");
const std::vector<std::string_view> kTests =
    split("defined; string; mapping; iterable; number; odd; in l; eq a; divisibleby 2; lt 3; none; sameas b");
const std::vector<std::string_view> kOperators = split("+; -; *; /; //; %; ~; ==; !=; <; >=; in; not in; and; or");
constexpr std::string_view kGaps[] = {"", "x", " ", "\n", "\n  ", "é\n", "{# c #}"};

template <class Texts>
std::string one_of(Choices& choices, const Texts& of) {
  return std::string(of[choices.number(std::size(of) - 1)]);
}

std::string expression(Choices& choices, int depth) {
  if (depth == 0 || !choices.any()) return one_of(choices, kAtoms);
  switch (choices.number(7)) {
    case 0: return "(" + expression(choices, depth - 1) + ")|" + one_of(choices, kFilters);
    case 1: return "(" + expression(choices, depth - 1) + ")." + one_of(choices, kMethods);
    case 2: return "(" + expression(choices, depth - 1) + ") is " + one_of(choices, kTests);
    case 3:
      return "(" + expression(choices, depth - 1) + ") " + one_of(choices, kOperators) + " (" +
             expression(choices, depth - 1) + ")";
    case 4:
      return "(" + expression(choices, depth - 1) + " if " + expression(choices, depth - 1) + " else " +
             expression(choices, depth - 1) + ")";
    case 5: return "[" + expression(choices, depth - 1) + ", " + expression(choices, depth - 1) + "]";
    case 6:
      return "(" + expression(choices, depth - 1) + ")[" + std::to_string(static_cast<int>(choices.number(6)) - 3) +
             (choices.coin() ? ":]" : "]");
    default: return one_of(choices, kAtoms);
  }
}

std::string statements(Choices& choices, int depth) {
  std::string out;
  for (size_t n = choices.number(3) + 1; n > 0; n--) {
    out += one_of(choices, kGaps);
    if (depth == 0) {
      out += "{{ " + expression(choices, 2) + " }}";
      continue;
    }
    const std::string dash = choices.coin() ? "-" : "", open = "{%" + dash + " ", close = " " + dash + "%}";
    const auto block = [&](const std::string& head, const std::string& end) {
      out += open + head + close + statements(choices, depth - 1) + open + end + close;
    };
    switch (choices.number(11)) {
      case 0: block("if " + expression(choices, 2), "endif"); break;
      case 1: block("for a in " + expression(choices, 2), "endfor"); break;
      case 2: block("for a, b in " + expression(choices, 1), "else %}E{% endfor"); break;
      case 3: block("set b", "endset"); break;
      case 4: out += open + "set b = " + expression(choices, 2) + close; break;
      case 5: block("macro m(a, b=a)", "endmacro"); break;
      case 6: out += "{{ m(" + expression(choices, 1) + ") }}"; break;
      case 7: block("with a = " + expression(choices, 1), "endwith"); break;
      case 8: block("filter " + one_of(choices, kFilters), "endfilter"); break;
      case 9: block("generation", "endgeneration"); break;
      case 10:
        out += "{% set ns = namespace(v=0) %}{% for q in l %}{% set ns.v = " + expression(choices, 2) +
               " %}{% endfor %}{{ ns.v }}";
        break;
      default: out += "{{ " + expression(choices, 3) + " }}";
    }
  }
  return out;
}

std::string json_value(Choices& choices, int depth) {
  switch (choices.number(depth == 0 ? 5 : 7)) {
    case 0: return "null";
    case 1: return choices.coin() ? "true" : "false";
    case 2: return std::to_string(choices.number(300));
    case 3: return std::to_string(choices.number(300)) + ".25e-" + std::to_string(choices.number(9));
    case 6: {
      std::string list = "[";
      for (size_t n = choices.number(3); n > 0; n--) list += json_value(choices, depth - 1) + (n > 1 ? "," : "");
      return list + "]";
    }
    case 7:
      return R"({"x": )" + json_value(choices, depth - 1) + R"(, "items": )" + json_value(choices, depth - 1) + "}";
    default: {
      std::string text = "\"";
      for (const char c : some_text(choices, 6))
        text += c == '\n' ? std::string("\\n") : c == '<' ? std::string("\\u003c") : std::string(1, c);
      return text + "\"";
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Choices choices(data, size);
  const std::string source = statements(choices, 2);
  const std::string variables = "{\"a\": " + json_value(choices, 2) + ", \"b\": " + json_value(choices, 2) +
                                R"(, "c": {"x": )" + json_value(choices, 1) + R"(}, "l": [)" + json_value(choices, 2) +
                                "]}";
  if (const auto parsed = templates::parsed(source)) templates::render_twice(parsed, variables);
  return 0;
}
