// Calls of values, and macros.
#include <algorithm>

#include "evaluate/evaluator.h"
#include "values/filter.h"
#include "values/method.h"

namespace tokenweir::templates {

static constexpr uint32_t kMostCalls = 200;  // of macros within each other

Value Evaluator::call(const Value& callee, const Arguments& arguments) {
  switch (callee.kind) {
    case Kind::Macro: return call_macro(*callee.macro, arguments);
    case Kind::Method: return (*callee.method->method)(*this, callee.method->self, arguments);
    case Kind::Function: return callee.function->call(*this, arguments);
    case Kind::Loop:
      if (arguments.count != 1 || arguments.named_count) type_error("a recursive loop takes one argument");
      return call_loop(*callee.loop, arguments.positional[0]);
    case Kind::Joiner: {
      if (arguments.count || arguments.named_count) type_error("a joiner takes no arguments");
      return callee.cycler->at++ ? callee.cycler->items->items[0] : Value::of_text(workspace.empty());
    }
    case Kind::Undefined: fail_undefined(callee);
    default: type_error("'", type_name(callee), "' object is not callable");
  }
}

Value Evaluator::call_macro(const MacroValue& macro, const Arguments& arguments) {
  const Macro& node = *macro.node;
  const auto fail = [&](const std::string& what) { type_error("macro '", node.name->text, "' ", what); };
  check_stack("macros");
  workspace.spend(1 + node.slots / 4);
  Frame* const frame = workspace.arena.make<Frame>(Frame{workspace.arena.array<Value>(node.slots + 1u), macro.frame});
  clear(*frame, {0, node.slots});
  const uint32_t parameters = node.parameters.size;
  for (uint32_t i = 0; i < std::min(arguments.count, parameters); i++)
    frame->slots[node.parameter_slots[i]] = arguments.positional[i];

  Dict* others = nullptr;
  bool found_caller = node.explicit_caller && arguments.count >= parameters;
  for (uint32_t i = 0; i < arguments.named_count; i++) {
    const Symbol* const name = arguments.names[i];
    uint32_t at = arguments.count;
    while (at < parameters && node.parameters[at] != name) at++;
    const bool is_caller = name->text == "caller";
    if (at < parameters) {
      found_caller |= is_caller;
      frame->slots[node.parameter_slots[at]] = arguments.named[i];
    } else if (is_caller && node.caller_slot != kNoSlot && !found_caller) {
      frame->slots[node.caller_slot] = arguments.named[i];
    } else if (node.kwargs_slot != kNoSlot) {
      if (!others) others = Dict::make(workspace, 4);
      set_name(workspace, *others, workspace.symbols.intern(name->text), arguments.named[i]);
    } else if (is_caller) {
      fail("was invoked with two values for the special caller argument. This is most likely a bug.");
    } else {
      fail("takes no keyword argument '" + std::string(name->text) + "'");
    }
  }
  if (node.caller_slot != kNoSlot && frame->slots[node.caller_slot].is_missing())
    frame->slots[node.caller_slot] = Value::undefined_hint("No caller defined");
  if (node.kwargs_slot != kNoSlot)
    frame->slots[node.kwargs_slot] = Value::of_dict(others ? others : Dict::make(workspace, 0));
  if (node.varargs_slot != kNoSlot) {
    List* const rest = List::make(workspace, 1);
    for (uint32_t i = parameters; i < arguments.count; i++) rest->add(workspace, arguments.positional[i]);
    frame->slots[node.varargs_slot] = Value::of_tuple(rest);
  } else if (arguments.count > parameters) {
    fail("takes not more than " + std::to_string(parameters) + " argument(s)");
  }
  const uint32_t first_default = parameters - node.defaults.size;
  for (uint32_t i = 0; i < parameters; i++) {
    Value& slot = frame->slots[node.parameter_slots[i]];
    if (!slot.is_missing()) continue;
    slot = i >= first_default ? eval(*node.defaults[i - first_default], *frame)
                              : Value::undefined_hint("a parameter of the macro was not provided");
  }
  const uint32_t line = line_;
  if (++calls_ > kMostCalls) throw Failure(joined("RecursionError: macros are nested more than ", kMostCalls, " deep"));
  Text* const text = capture(node.body, *frame);
  calls_--;
  line_ = line;
  return Value::of_text(text);
}

void check_namespace_name(const Symbol& name) {
  if (name.text.starts_with('_'))
    throw Failure(
        joined("SecurityError: Chat templates cannot store underscore-prefixed attributes on a namespace, but got '",
               name.text, "'"));
}

std::string_view macro_name(const MacroValue& macro) { return macro.node->name->text; }

}  // namespace tokenweir::templates
