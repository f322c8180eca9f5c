// Filters of sequences. Where Jinja returns a generator, so do these: the first read exhausts it.
#include <algorithm>

#include "builtins/filter_tables.h"
#include "evaluate/evaluator.h"
#include "text/characters.h"
#include "values/text_edit.h"

namespace tokenweir::templates {

Value attribute_at(Evaluator& evaluator, Value value, const Value& path, const Value& otherwise) {
  const auto step = [&](const Value& key, Symbol* symbol) {
    value = evaluator.item(value, key, symbol);
    if (value.is_undefined() && !otherwise.is_missing()) value = otherwise;
  };
  if (path.is_missing() || path.is_none()) return value;
  if (!path.is_text()) {
    step(path, nullptr);
    return value;
  }
  Workspace& workspace = evaluator.workspace;
  const std::string_view flat = workspace.flat(path.text);
  for (size_t at = 0; at <= flat.size();) {
    const size_t dot = std::min(flat.find('.', at), flat.size());
    const std::string_view key = flat.substr(at, dot - at);
    if (!key.empty() && key.find_first_not_of("0123456789") == key.npos) {
      step(integer_of(workspace, key), nullptr);
    } else {
      Symbol* const symbol = workspace.symbols.intern(key);
      step(Value::of_text(shown(workspace, symbol)), symbol);
    }
    at = dot + 1;
  }
  return value;
}

namespace {

// Case does not count in comparisons unless it is asked for.
Value folded(Evaluator& evaluator, const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.is_text()) return value;
  return Value::of_text(change_case(evaluator.workspace, value.text, Case::Lower));
}

struct Keyed {
  Value key, item;
};

// Sorts by keys, equal ones in the order they had.
void sort(Evaluator& evaluator, std::vector<Keyed>& items, bool reverse) {
  evaluator.workspace.spend(items.size());
  std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
    evaluator.workspace.spend(1);
    return compare(evaluator.workspace, reverse ? b.key : a.key, reverse ? a.key : b.key) == -1;
  });
}

Value list_of(Evaluator& evaluator, const std::vector<Keyed>& items) {
  List* const list = List::make(evaluator.workspace, static_cast<uint32_t>(items.size()));
  for (const Keyed& each : items) list->add(evaluator.workspace, each.item);
  return Value::of_list(list);
}

// A generator whose items are made when the first one is asked for.
struct Deferred final : Generator {
  using Make = List* (*)(Evaluator&, const Value& subject, const Bound&);

  Deferred(Make make, const Value& subject, const Bound& bound) : make(make), subject(subject), bound(bound) {}

  bool next(Evaluator& evaluator, Value& item) override {
    evaluator.check_stack("generators");
    if (!list) list = make(evaluator, subject, bound);
    if (at == list->size) return false;
    item = list->items[at++];
    return true;
  }

  const Make make;
  const Value subject;
  const Bound bound;
  List* list = nullptr;
  uint32_t at = 0;
};

template <Deferred::Make make>
Value deferred(Evaluator& evaluator, const Value& subject, const Bound& bound) {
  return Value::of_generator(evaluator.workspace.arena.make<Deferred>(make, subject, bound));
}

Value list(Evaluator& evaluator, const Value& subject, const Bound&) {
  const List& items = *evaluator.to_list(subject);
  evaluator.workspace.spend(items.size / 8);
  return Value::of_list(List::of(evaluator.workspace, items.items, items.size));
}

List* items(Evaluator& evaluator, const Value& subject, const Bound&) {
  if (subject.is_undefined()) return List::make(evaluator.workspace, 0);
  if (subject.kind != Kind::Dict) type_error("Can only get item pairs from a mapping.");
  return evaluator.to_list(Value::of_view(subject.dict, ViewKind::Items));
}

Value first(Evaluator& evaluator, const Value& subject, const Bound&) {
  if (subject.is_text() && subject.text->size)
    return Value::of_text(evaluator.item(subject, Value::of_int(0), nullptr).text);
  Iterator items = evaluator.iterate(subject);
  Value item;
  return items.next(evaluator, item) ? item : Value::undefined_hint("No first item, sequence was empty.");
}

Value last(Evaluator& evaluator, const Value& subject, const Bound&) {
  if (subject.kind == Kind::Generator || subject.kind == Kind::Loop)
    type_error("'", type_name(subject), "' object is not reversible");
  if (subject.is_text() && subject.text->size)
    return Value::of_text(evaluator.item(subject, Value::of_int(-1), nullptr).text);
  const List& items = *evaluator.to_list(subject);
  return items.size ? items.items[items.size - 1] : Value::undefined_hint("No last item, sequence was empty.");
}

List* reversed_items(Evaluator& evaluator, const Value& subject, const Bound&) {
  const List& items = *evaluator.to_list(subject);
  List* const list = List::make(evaluator.workspace, items.size);
  for (uint32_t i = items.size; i-- > 0;) list->add(evaluator.workspace, items.items[i]);
  return list;
}

Value reverse(Evaluator& evaluator, const Value& subject, const Bound& bound) {
  if (subject.is_text()) return Value::of_text(reversed(evaluator.workspace, subject.text), subject.detail);
  if (subject.kind == Kind::Generator) return Value::of_list(reversed_items(evaluator, subject, bound));
  evaluator.iterate(subject);  // refuses what has no items at once
  return deferred<reversed_items>(evaluator, subject, bound);
}

Value join(Evaluator& evaluator, const Value& subject, const Bound& bound) {
  Workspace& workspace = evaluator.workspace;
  Text* const between = bound[0].is_missing() ? workspace.empty() : to_text(workspace, bound[0]);
  if (subject.is_text() && bound[1].is_missing() && !between->size) return Value::of_text(subject.text);
  Iterator items = evaluator.iterate(subject);
  std::vector<Text*> parts;
  for (Value item; items.next(evaluator, item);) {
    workspace.spend(1);
    parts.push_back(to_text(workspace, attribute_at(evaluator, item, bound[1])));
  }
  Rope rope(workspace);
  for (size_t i = 0; i < parts.size(); i++) {
    if (i) rope.add(between);
    rope.add(parts[i]);
  }
  return Value::of_text(rope.finish());
}

Value sorted(Evaluator& evaluator, const Value& subject, const Bound& bound) {
  Workspace& workspace = evaluator.workspace;
  const bool case_sensitive = truth_or(bound[1], false);
  // Several attributes are parted by commas. A key is a list even of one value, as in Jinja2: equal values that have no
  // order (none, dicts) are then allowed.
  List* const paths =
      bound[2].is_text() ? split(workspace, bound[2].text, workspace.engine(","), -1, false) : List::make(workspace, 1);
  if (!paths->size) paths->add(workspace, bound[2]);
  const List& items = *evaluator.to_list(subject);
  std::vector<Keyed> keyed;
  for (uint32_t i = 0; i < items.size; i++) {
    List* const key = List::make(workspace, paths->size);
    for (uint32_t k = 0; k < paths->size; k++) {
      workspace.spend(1);
      key->add(workspace, folded(evaluator, attribute_at(evaluator, items.items[i], paths->items[k]), case_sensitive));
    }
    keyed.push_back({Value::of_list(key), items.items[i]});
  }
  sort(evaluator, keyed, truth_or(bound[0], false));
  return list_of(evaluator, keyed);
}

Value dict_sorted(Evaluator& evaluator, const Value& subject, const Bound& bound) {
  const std::string_view by = bound[1].is_missing() ? "key" : evaluator.workspace.flat(text_argument(bound[1], "by"));
  if (by != "key" && by != "value") throw Failure("You can only sort by either \"key\" or \"value\"");
  if (subject.is_undefined()) fail_undefined(subject);
  if (subject.kind != Kind::Dict)
    throw Failure(joined("AttributeError: '", type_name(subject), "' object has no attribute 'items'"));
  const List& pairs = *items(evaluator, subject, bound);
  std::vector<Keyed> keyed;
  for (uint32_t i = 0; i < pairs.size; i++)
    keyed.push_back(
        {folded(evaluator, pairs.items[i].list->items[by == "value"], truth_or(bound[0], false)), pairs.items[i]});
  sort(evaluator, keyed, truth_or(bound[2], false));
  return list_of(evaluator, keyed);
}

List* unique(Evaluator& evaluator, const Value& subject, const Bound& bound) {
  Workspace& workspace = evaluator.workspace;
  List* const kept = List::make(workspace, 4);
  Dict* const seen = Dict::make(workspace, 4);
  Iterator items = evaluator.iterate(subject);
  for (Value item; items.next(evaluator, item);) {
    workspace.spend(1);
    const Value key = folded(evaluator, attribute_at(evaluator, item, bound[1]), truth_or(bound[0], false));
    if (seen->find(workspace, key)) continue;
    seen->set(workspace, key, Value::none());
    kept->add(workspace, item);
  }
  return kept;
}

Value grouped(Evaluator& evaluator, const Value& subject, const Bound& bound) {
  Workspace& workspace = evaluator.workspace;
  const bool case_sensitive = truth_or(bound[2], false);
  const Value otherwise = bound[1].is_none() ? Value() : bound[1];
  const List& items = *evaluator.to_list(subject);
  std::vector<Keyed> keyed;
  for (uint32_t i = 0; i < items.size; i++) {
    workspace.spend(1);
    keyed.push_back({folded(evaluator, attribute_at(evaluator, items.items[i], bound[0], otherwise), case_sensitive),
                     items.items[i]});
  }
  sort(evaluator, keyed, false);
  List* const groups = List::make(workspace, 4);
  List* members = nullptr;
  for (size_t i = 0; i < keyed.size(); i++) {
    if (!i || !equal(workspace, keyed[i].key, keyed[i - 1].key)) {
      members = List::make(workspace, 4);
      List* const pair = List::make(workspace, 2);
      pair->add(workspace, case_sensitive ? keyed[i].key : attribute_at(evaluator, keyed[i].item, bound[0], otherwise));
      pair->add(workspace, Value::of_list(members));
      Value group = Value::of_tuple(pair);
      group.detail = 1;
      groups->add(workspace, group);
    }
    members->add(workspace, keyed[i].item);
  }
  return Value::of_list(groups);
}

template <int sign>
Value extreme(Evaluator& evaluator, const Value& subject, const Bound& bound) {
  Workspace& workspace = evaluator.workspace;
  Iterator items = evaluator.iterate(subject);
  Keyed best;
  for (Value item; items.next(evaluator, item);) {
    workspace.spend(1);
    const Value key = folded(evaluator, attribute_at(evaluator, item, bound[1]), truth_or(bound[0], false));
    if (best.item.is_missing() || compare(workspace, key, best.key, sign < 0 ? "<" : ">") == sign) best = {key, item};
  }
  return best.item.is_missing() ? Value::undefined_hint("No aggregated item, sequence was empty.") : best.item;
}

Value sum(Evaluator& evaluator, const Value& subject, const Bound& bound) {
  Value total = bound[1].is_missing() ? Value::of_int(0) : bound[1];
  if (total.is_text()) type_error("sum() can't sum strings [use ''.join(seq) instead]");
  Iterator items = evaluator.iterate(subject);
  for (Value item; items.next(evaluator, item);) {
    evaluator.workspace.spend(1);
    total = evaluator.arithmetic(Arithmetic::Add, total, attribute_at(evaluator, item, bound[0]));
  }
  return total;
}

List* batch(Evaluator& evaluator, const Value& subject, const Bound& bound) {
  Workspace& workspace = evaluator.workspace;
  const int64_t size = integer_argument(bound[0], "linecount");
  List* const batches = List::make(workspace, 4);
  List* row = List::make(workspace, 4);
  Iterator items = evaluator.iterate(subject);
  for (Value item; items.next(evaluator, item);) {
    workspace.spend(1);
    if (row->size == size) {
      batches->add(workspace, Value::of_list(row));
      row = List::make(workspace, 4);
    }
    row->add(workspace, item);
  }
  if (!row->size) return batches;
  if (!bound[1].is_missing() && !bound[1].is_none())
    while (row->size < size) {
      workspace.spend(1);
      row->add(workspace, bound[1]);
    }
  batches->add(workspace, Value::of_list(row));
  return batches;
}

List* slices(Evaluator& evaluator, const Value& subject, const Bound& bound) {
  Workspace& workspace = evaluator.workspace;
  const List& items = *evaluator.to_list(subject);
  const int64_t count = integer_argument(bound[0], "slices");
  if (!count) throw Failure("ZeroDivisionError: integer division or modulo by zero");
  List* const parts = List::make(workspace, 4);
  const int64_t each = items.size / count, longer = items.size % count;
  int64_t at = 0;
  for (int64_t i = 0; i < count; i++) {
    workspace.spend(1);
    List* const part = List::make(workspace, 4);
    const int64_t end = at + each + (i < longer);
    for (; at < end; at++) part->add(workspace, items.items[at]);
    if (!bound[1].is_missing() && !bound[1].is_none() && i >= longer) part->add(workspace, bound[1]);
    parts->add(workspace, Value::of_list(part));
  }
  return parts;
}

}  // namespace

const std::vector<Filter>& sequence_filters() {
  static const std::vector<Filter> filters{
      {"batch", {{"linecount", "fill_with"}, 1}, deferred<batch>},
      {"dictsort", {{"case_sensitive", "by", "reverse"}}, dict_sorted},
      {"first", {}, first},
      {"groupby", {{"attribute", "default", "case_sensitive"}, 1}, grouped},
      {"items", {}, deferred<items>},
      {"join", {{"d", "attribute"}}, join},
      {"last", {}, last},
      {"list", {}, list},
      {"max", {{"case_sensitive", "attribute"}}, extreme<1>},
      {"min", {{"case_sensitive", "attribute"}}, extreme<-1>},
      {"reverse", {}, reverse},
      {"slice", {{"slices", "fill_with"}, 1}, deferred<slices>},
      {"sort", {{"reverse", "case_sensitive", "attribute"}}, sorted},
      {"sum", {{"attribute", "start"}}, sum},
      {"unique", {{"case_sensitive", "attribute"}}, deferred<unique>},
  };
  return filters;
}

bool is_known_to_jinja(std::string_view name) {
  for (const std::string_view other :
       {"filesizeformat", "pprint", "random", "striptags", "urlencode", "urlize", "wordwrap", "xmlattr"})
    if (name == other) return true;
  return false;
}

std::string missing_filter(std::string_view name) {
  if (is_known_to_jinja(name)) return "the filter '" + std::string(name) + "' is not supported";
  return "No filter named '" + std::string(name) + "' found.";
}

const Filter* find_filter(std::string_view name) {
  for (const auto* const table : {&value_filters(), &sequence_filters(), &item_filters()})
    if (const Filter* const filter = find_named(*table, name)) return filter;
  return nullptr;
}

}  // namespace tokenweir::templates
