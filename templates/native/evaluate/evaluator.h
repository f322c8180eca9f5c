// Evaluation of a template's tree: one object a render.
#pragma once

#include <string>
#include <unordered_map>

#include "language/tree.h"
#include "text/origin.h"
#include "values/arguments.h"

namespace tokenweir::templates {

// The variables of one call of a function; they live in the arena, since macros refer to them.
struct Frame {
  Value* slots;
  Frame* outer;
};

struct MacroValue {
  const Macro* node;
  Frame* frame;  // in which it was defined
};

// The items of a value, one after the other.
struct Iterator {
  List* list = nullptr;
  uint32_t at = 0;
  Generator* generator = nullptr;

  bool next(Evaluator& evaluator, Value& item) {
    if (generator) return generator->next(evaluator, item);
    if (at == list->size) return false;
    item = list->items[at++];
    return true;
  }
};

// One run of a loop. Items are fetched when they are asked for: a test may depend on what the body does.
struct LoopState {
  const For* node;
  Frame* frame;
  Iterator source;
  List* items;    // those fetched so far
  bool complete;  // there are no others
  uint32_t at;
  uint32_t depth;  // of recursion, from 0
  Value changed;   // the last arguments of loop.changed()

  // Whether there is an item `index`.
  bool has(Evaluator& evaluator, uint32_t index) {
    return index < items->size || (!complete && fetch(evaluator, index));
  }
  Value field(Evaluator& evaluator, LoopField field);

 private:
  bool fetch(Evaluator& evaluator, uint32_t index);
};

// The local time of a render.
struct Clock {
  int year, month, day, hour, minute, second, microsecond, weekday, yearday;  // January is 1, Monday 0
};

class Evaluator {
 public:
  Evaluator(Workspace& workspace, Origins& origins, const Dict& inputs, const Clock& clock)
      : workspace(workspace), clock(clock), origins_(origins), inputs_(inputs) {}

  Workspace& workspace;
  const Clock clock;

  // Runs the root's statements; the text is then in the rope that is open.
  void run(Nodes statements, uint16_t slots);
  uint32_t line() const { return line_; }
  // Refuses to go deeper where the machine's stack runs out; `what` recurses.
  void check_stack(const char* what) const;

  // Operators
  Value attribute(const Value& object, Symbol* symbol);
  Value item(const Value& object, const Value& key, Symbol* symbol);
  Value part(const Value& object, const Value& start, const Value& stop, const Value& step);
  Value arithmetic(Arithmetic op, const Value& left, const Value& right);
  bool contains(const Value& container, const Value& item);
  bool holds(Comparison comparison, const Value& left, const Value& right);
  Value call(const Value& callee, const Arguments& arguments);
  // A recursive loop over other items.
  Value call_loop(LoopState& loop, const Value& items);

  // Items
  Iterator iterate(const Value& value);
  List* to_list(const Value& value);

  Value eval(const Node& node, Frame& frame);
  // Binds an item to a target of a loop, set or with.
  void assign(const Target& target, const Value& value, Frame& frame);

 private:
  enum class Flow : uint8_t { Next, Break, Continue };
  class ArgumentValues;

  Flow run(Nodes statements, Frame& frame);
  Flow exec(const Node& node, Frame& frame);
  Flow exec_rare(const Node& node, Frame& frame);
  Flow loop(const For& node, Frame& frame, const Value& items, uint32_t depth);
  Value macro_value(const Macro& node, Frame& frame);
  Text* capture(Nodes statements, Frame& frame);
  Value eval_rare(const Node& node, Frame& frame);
  Value eval_compare(const Compare& node, Frame& frame);
  Value eval_call(const Call& node, Frame& frame, const Value* caller);
  Value eval_filter(const FilterNode& node, Frame& frame, const Value* subject);
  Value look_up(const Name& node, Frame& frame);
  Value call_macro(const MacroValue& macro, const Arguments& arguments);
  Value filtered(const Node* chain, Text* text, Frame& frame);
  void emit(const Node& node, Frame& frame);
  // Adds to the output; in a loop's turn over a media part, the template's text gets the place of the part as its origin.
  void put(Text* text) {
    if (media_) [[unlikely]]
      put_in_place(text);
    else
      workspace.emit(text);
  }
  void put_in_place(Text* text);
  bool is_media(const Value& item) const;
  void clear(Frame& frame, SlotRange range) {
    for (uint16_t i = range.begin; i < range.end; i++) frame.slots[i] = Value();
  }

  Origins& origins_;
  const Dict& inputs_;
  uint32_t media_ = 0;                             // the origin of the media part that a loop is at
  std::unordered_map<uint32_t, uint32_t> places_;  // of parts that were written
  uint32_t line_ = 1, calls_ = 0;
  const char* stack_base_ = nullptr;
};

// Refuses the names that no namespace may have.
void check_namespace_name(const Symbol& name);
std::string_view macro_name(const MacroValue& macro);
std::string loop_text(LoopState& loop);

}  // namespace tokenweir::templates
