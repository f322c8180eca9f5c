// JSON of an input and of a template's text: the origins of strings, and error messages for malformed ones.
#include "input/json_reader.h"
#include "input/message_checks.h"
#include "text/origin.h"

namespace tokenweir::templates {
namespace {

const std::set<std::string> kNobody;

// Input: each string has an origin of its own. What is wrong with values is told once the whole text is known to be JSON.
struct InputSource {
  Workspace& workspace;
  Origins& origins;
  std::string_view text;
  const std::set<std::string>& vouched;
  int depth;              // of the first list or object
  uint32_t too_deep = 0;  // the first place that is
  std::string lone_surrogate = {};

  void check() const {
    if (!lone_surrogate.empty()) throw BadText(lone_surrogate);
    if (too_deep) throw BadInput(nested_too_deep(origins.path(too_deep)));
  }

  void enter(uint32_t origin) {
    if (depth++ == kMostInputDepth && !too_deep) too_deep = origin;
  }
  void leave() { depth--; }
  void lone(uint32_t unit, uint32_t place, bool is_key, std::string_view before) {
    if (!lone_surrogate.empty()) return;
    char name[8];
    std::snprintf(name, sizeof name, "U+%04X", unit);
    const std::string path = place < Origins::kFirst ? "variables" : origins.path(place);
    lone_surrogate = (is_key ? "a key of " : "") + path + " has the lone surrogate " + name + " at character " +
                     std::to_string(count_characters(before));
  }

  // Keeps U+FFFD in place of lone surrogates; returns whether there were any.
  bool replace_lone() {
    const bool found = !lone_surrogate.empty();
    lone_surrogate.clear();
    return found;
  }

  // What reading on changes, to go back to.
  struct State {
    uint32_t origins, too_deep;
    std::string lone_surrogate;
  };
  State state() const { return {origins.size(), too_deep, lone_surrogate}; }
  void back_to(const State& known) {
    origins.cut(known.origins);
    too_deep = known.too_deep;
    lone_surrogate = known.lone_surrogate;
  }

  uint32_t of_scalar(uint32_t origin) const { return origin; }
  uint32_t item(uint32_t list, uint32_t index) {
    if (list < Origins::kFirst)
      return kFromEngine;  // a list in place of the variables, which is refused once it is read
    return origins.add(list, Origin::Step::Item, nullptr, index);
  }
  uint32_t under(uint32_t dict, const Symbol* key) {
    if (dict >= Origins::kFirst) return origins.add(dict, Origin::Step::Value, key);
    const uint32_t variable = origins.add_variable(key);
    if (!vouched.empty() && vouched.contains(std::string(key->text))) origins.at(variable).vouched = true;
    return variable;
  }
  void name_key(Text* key, uint32_t dict, const Symbol* symbol) {
    if (dict < Origins::kFirst) return;  // the names of variables are no values
    key->origin = origins.add(dict, Origin::Step::Key, symbol);
    key->offset = 0;
    origins.at(key->origin).is_text = true;
  }
  void note(uint32_t origin, size_t size) {
    if (origin >= Origins::kFirst) origins.at(origin).is_text = size != 0;
  }
  Text* plain(size_t begin, size_t end, uint32_t origin, bool ascii) {
    note(origin, end - begin);
    return workspace.leaf(text.substr(begin, end - begin), origin, 0, ascii);
  }
  Text* escaped(std::string_view bytes, size_t, size_t, uint32_t origin, bool ascii) {
    note(origin, bytes.size());
    return workspace.leaf(bytes, origin, 0, ascii);
  }
};

// Text of a template's own: strings are parts of it.
struct TextSource {
  Workspace& workspace;
  Text* whole;
  Slicer slicer;

  void enter(uint32_t) {}
  void leave() {}
  [[noreturn]] void lone(uint32_t, uint32_t, bool, std::string_view) const {
    throw BadText("a string has a lone surrogate, which has no UTF-8 form");
  }
  uint32_t of_scalar(uint32_t) const { return whole->is_leaf() ? whole->origin : kFromEngine; }
  uint32_t item(uint32_t, uint32_t) { return kFromEngine; }
  uint32_t under(uint32_t, const Symbol*) { return kFromEngine; }
  void name_key(Text*, uint32_t, const Symbol*) {}
  Text* plain(size_t begin, size_t end, uint32_t, bool) { return slicer(begin, end); }
  Text* escaped(std::string_view bytes, size_t begin, size_t end, uint32_t, bool) {
    const Text* const source = slicer(begin, end);
    if (source->is_leaf()) return workspace.leaf(bytes, source->origin, source->offset, -1, true);
    return workspace.leaf(bytes, kFromEngine, 0, -1,
                          true);  // of several origins, none of which may speak for the others
  }
};

}  // namespace

Value read_variables(Workspace& workspace, Origins& origins, std::string_view bytes,
                     const std::set<std::string>& vouched) {
  InputSource source{workspace, origins, bytes, vouched, 0};
  const Value read = Reader(workspace, source, bytes, JsonDialect::Strict).read(0);
  source.check();
  return read;
}

Value read_list(Workspace& workspace, Origins& origins, std::string_view bytes, uint32_t origin) {
  InputSource source{workspace, origins, bytes, kNobody, -1};  // its items are at depth 0
  const Value read = Reader(workspace, source, bytes, JsonDialect::Strict).read(origin);
  source.check();
  return read;
}

Value read_object_text(Workspace& workspace, Origins& origins, std::string_view text, uint32_t origin, bool* replaced) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos || text[first] != '{') return Value();
  const uint32_t before = origins.size();
  InputSource source{workspace, origins, text, kNobody, 0};
  try {
    const Value read = Reader(workspace, source, text, JsonDialect::Python).read(origin);
    if (replaced) {
      *replaced = source.replace_lone();
      if (source.too_deep) {
        origins.cut(before);
        return Value();
      }
    }
    source.check();
    origins.at(origin).is_text = replaced && *replaced;
    return read;
  } catch (const Failure&) {
    origins.cut(before);
    return Value();
  }
}

Value save_object_text(Workspace& workspace, Origins& origins, std::string_view text, uint32_t origin) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos || text[first] != '{') return Value();
  const uint32_t before = origins.size();
  InputSource source{workspace, origins, text, kNobody, 0};
  bool whole;
  const Value read = Reader(workspace, source, text, JsonDialect::Loose).read_members(origin, whole);
  const bool replaced = source.replace_lone();
  if (source.too_deep) {
    origins.cut(before);
    return Value();
  }
  origins.at(origin).is_text = replaced || !whole;
  return read;
}

Value parse_json(Workspace& workspace, Text* text) {
  const std::string_view flat = workspace.flat(text);
  TextSource source{workspace, text, Slicer(workspace, text)};
  return Reader(workspace, source, flat, JsonDialect::Python).read(kFromEngine);
}

}  // namespace tokenweir::templates
