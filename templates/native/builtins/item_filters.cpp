// Filters that pass items through one by one: map, select, reject and their like.
#include <algorithm>

#include "builtins/filter_tables.h"
#include "evaluate/evaluator.h"

namespace tokenweir::templates {
namespace {

// Arguments that outlive the call.
Arguments kept(Workspace& workspace, const Arguments& arguments) {
  Value* const values = workspace.arena.array<Value>(arguments.count + arguments.named_count + 1u);
  const Symbol** const names = workspace.arena.array<const Symbol*>(arguments.named_count + 1u);
  std::copy_n(arguments.positional, arguments.count, values);
  std::copy_n(arguments.named, arguments.named_count, values + arguments.count);
  std::copy_n(arguments.names, arguments.named_count, names);
  return {values, arguments.count, names, values + arguments.count, arguments.named_count};
}

// Base of map, select and their like: the items of a value, which is looked at when the first item is asked for.
struct Stage : Generator {
  Stage(const Value& subject, const Arguments& arguments) : subject(subject), arguments(arguments) {}

  bool begin(Evaluator& evaluator) {
    evaluator.check_stack("generators");
    if (!begun) {
      begun = true;
      empty = !truth(subject);
      if (!empty) {
        prepare(evaluator);
        items = evaluator.iterate(subject);
      }
    }
    return !empty;
  }
  virtual void prepare(Evaluator& evaluator) = 0;

  const Value subject;
  Arguments arguments;
  Iterator items;
  bool begun = false, empty = false;

 protected:
  ~Stage() = default;
};

struct Map final : Stage {
  using Stage::Stage;

  void prepare(Evaluator& evaluator) override {
    if (!arguments.count && arguments.named_count) {
      for (uint32_t i = 0; i < arguments.named_count; i++) {
        if (arguments.names[i]->text == "attribute")
          path = arguments.named[i];
        else if (arguments.names[i]->text == "default")
          otherwise = arguments.named[i];
        else
          throw Failure(joined("Unexpected keyword argument '", arguments.names[i]->text, "'"));
      }
      if (!path.is_missing()) {
        if (otherwise.is_none()) otherwise = Value();
        return;
      }
    }
    if (!arguments.count) throw Failure("map requires a filter argument");
    const std::string name(evaluator.workspace.flat(text_argument(arguments.positional[0], "filter name")));
    filter = find_filter(name);
    if (!filter) throw Failure(missing_filter(name));
  }

  bool next(Evaluator& evaluator, Value& item) override {
    if (!begin(evaluator) || !items.next(evaluator, item)) return false;
    evaluator.workspace.spend(1);
    item = filter ? (*filter)(evaluator, item, arguments.behind(1)) : attribute_at(evaluator, item, path, otherwise);
    return true;
  }

  const Filter* filter = nullptr;
  Value path, otherwise;
};

struct Select final : Stage {
  Select(const Value& subject, const Arguments& arguments, bool wanted, bool by_attribute)
      : Stage(subject, arguments), wanted(wanted), by_attribute(by_attribute) {}

  void prepare(Evaluator& evaluator) override {
    const uint32_t name_at = by_attribute;
    if (arguments.count < name_at) throw Failure("Missing parameter for attribute name");
    if (arguments.count == name_at) return;
    const std::string name(evaluator.workspace.flat(text_argument(arguments.positional[name_at], "test name")));
    test = find_test(name);
    if (!test) throw Failure(joined("No test named '", name, "'."));
  }

  bool next(Evaluator& evaluator, Value& item) override {
    if (!begin(evaluator)) return false;
    while (items.next(evaluator, item)) {
      evaluator.workspace.spend(1);
      const Value subject = by_attribute ? attribute_at(evaluator, item, arguments.positional[0]) : item;
      const bool holds = test ? (*test)(evaluator, subject, arguments.behind(by_attribute + 1u)) : truth(subject);
      if (holds == wanted) return true;
    }
    return false;
  }

  const Test* test = nullptr;
  const bool wanted, by_attribute;
};

Value map(Evaluator& evaluator, const Value& subject, const Arguments& arguments) {
  return Value::of_generator(evaluator.workspace.arena.make<Map>(subject, kept(evaluator.workspace, arguments)));
}

template <bool wanted, bool by_attribute>
Value select(Evaluator& evaluator, const Value& subject, const Arguments& arguments) {
  return Value::of_generator(
      evaluator.workspace.arena.make<Select>(subject, kept(evaluator.workspace, arguments), wanted, by_attribute));
}

}  // namespace

const std::vector<Filter>& item_filters() {
  static const std::vector<Filter> filters{
      {"map", {}, nullptr, map},
      {"reject", {}, nullptr, select<false, false>},
      {"rejectattr", {}, nullptr, select<false, true>},
      {"select", {}, nullptr, select<true, false>},
      {"selectattr", {}, nullptr, select<true, true>},
  };
  return filters;
}

}  // namespace tokenweir::templates
