// Methods of mappings, lists and loops, and the table of all.
#include <vector>

#include "builtins/text_methods.h"
#include "evaluate/evaluator.h"
#include "values/method.h"

namespace tokenweir::templates {
namespace {

template <ViewKind kind>
Value view(Evaluator&, const Value& self, const Bound&) {
  return Value::of_view(self.dict, kind);
}

Value get(Evaluator& evaluator, const Value& self, const Bound& bound) {
  if (const Value* const found = self.dict->find(evaluator.workspace, bound[0])) return *found;
  return bound[1].is_missing() ? Value::none() : bound[1];
}

Value copied(Evaluator&, const Value& self, const Bound&) { return self; }  // nothing changes either of them

Value index_of(Evaluator& evaluator, const Value& self, const Bound& bound) {
  const int64_t size = self.list->size;
  const auto limit = [&](const Value& value, int64_t otherwise) {
    const int64_t at = integer_or(value, otherwise, "index");
    return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
  };
  for (int64_t i = limit(bound[1], 0), end = limit(bound[2], size); i < end; i++) {
    evaluator.workspace.spend(1);
    if (equal(evaluator.workspace, self.list->items[i], bound[0])) return Value::of_int(i);
  }
  value_error(type_name(self), ".index(x): x not in ", type_name(self));
}

Value count_of(Evaluator& evaluator, const Value& self, const Bound& bound) {
  int64_t count = 0;
  for (const Value& item : *self.list) {
    evaluator.workspace.spend(1);
    count += equal(evaluator.workspace, item, bound[0]);
  }
  return Value::of_int(count);
}

Method forbidden(std::string_view name) {
  Method method{name};
  method.changes = true;
  return method;
}

const Signature kIndex{{kPlaceOnly, kPlaceOnly, kPlaceOnly}, 1};

const std::vector<Method>& dict_methods() {
  static const std::vector<Method> table{
      {"copy", {}, copied},
      {"fromkeys"},
      {"get", {{kPlaceOnly, kPlaceOnly}, 1}, get},
      {"items", {}, view<ViewKind::Items>},
      {"keys", {}, view<ViewKind::Keys>},
      {"values", {}, view<ViewKind::Values>},
      forbidden("clear"),
      forbidden("pop"),
      forbidden("popitem"),
      forbidden("setdefault"),
      forbidden("update"),
  };
  return table;
}

const std::vector<Method>& list_methods() {
  static const std::vector<Method> table{
      {"copy", {}, copied}, {"count", kOne, count_of}, {"index", kIndex, index_of}, forbidden("append"),
      forbidden("clear"),   forbidden("extend"),       forbidden("insert"),         forbidden("pop"),
      forbidden("remove"),  forbidden("reverse"),      forbidden("sort"),
  };
  return table;
}

const std::vector<Method>& tuple_methods() {
  static const std::vector<Method> table{{"count", kOne, count_of}, {"index", kIndex, index_of}};
  return table;
}

Value cycle(Evaluator&, const Value& self, const Arguments& arguments) {
  if (!arguments.count) type_error("no items for cycling given");
  return arguments.positional[self.loop->at % arguments.count];
}

Value changed(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Value now = Value::of_tuple(List::of(evaluator.workspace, arguments.positional, arguments.count));
  Value& before = self.loop->changed;
  if (!before.is_missing() && equal(evaluator.workspace, before, now)) return Value::boolean(false);
  before = now;
  return Value::boolean(true);
}

Value next_of_cycler(Evaluator&, const Value& self, const Bound&) {
  Cycler& cycler = *self.cycler;
  const Value item = cycler.items->items[cycler.at];
  cycler.at = (cycler.at + 1) % cycler.items->size;
  return item;
}

Value reset_cycler(Evaluator&, const Value& self, const Bound&) {
  self.cycler->at = 0;
  return Value::none();
}

}  // namespace

const Method kLoopCycle{"cycle", {}, nullptr, cycle}, kLoopChanged{"changed", {}, nullptr, changed};
const Method kCyclerNext{"next", {}, next_of_cycler}, kCyclerReset{"reset", {}, reset_cycler};

Value Method::operator()(Evaluator& evaluator, const Value& self, const Arguments& arguments) const {
  if (call) return call(evaluator, self, bind(name, signature, arguments));
  if (call_any) return call_any(evaluator, self, arguments);
  throw Failure(joined("the method '", name, "' of '", type_name(self), "' is not supported"));
}

void describe(Symbol& symbol) {
  static constexpr std::pair<std::string_view, LoopField> kFields[] = {
      {"index", LoopField::Index},         {"index0", LoopField::Index0},     {"revindex", LoopField::RevIndex},
      {"revindex0", LoopField::RevIndex0}, {"first", LoopField::First},       {"last", LoopField::Last},
      {"length", LoopField::Length},       {"previtem", LoopField::Previous}, {"nextitem", LoopField::Next},
      {"depth", LoopField::Depth},         {"depth0", LoopField::Depth0}};
  for (const auto& [name, field] : kFields)
    if (symbol.text == name) symbol.loop_field = field;
  symbol.of_text = find_named(text_methods(), symbol.text);
  symbol.of_dict = find_named(dict_methods(), symbol.text);
  symbol.of_list = find_named(list_methods(), symbol.text);
  symbol.of_tuple = find_named(tuple_methods(), symbol.text);
  const std::string_view text = symbol.text;
  symbol.is_dunder = text.size() > 4 && text.starts_with("__") && text.ends_with("__");
  symbol.described = true;
}

const Method* method_of(const Value& value, Symbol* symbol) {
  if (!symbol->described) describe(*symbol);
  switch (value.kind) {
    case Kind::Text: return symbol->of_text;
    case Kind::Dict: return symbol->of_dict;
    case Kind::List: return symbol->of_list;
    case Kind::Tuple:
    case Kind::Range: return symbol->of_tuple;
    default: return nullptr;
  }
}

}  // namespace tokenweir::templates
