// Statements, and the expressions that templates use most. Rare ones are in functions of their own: a small frame of
// `eval` is what makes deep templates fast.
#include "evaluate/evaluator.h"

#include <cstring>

#include "values/filter.h"
#include "values/method.h"

namespace tokenweir::templates {

namespace {
constexpr ptrdiff_t kMostStack = 384 << 10;  // bytes of the machine's stack, of which threads may have 512 KiB
}  // namespace

void Evaluator::check_stack(const char* what) const {
  const char here = 0;
  if (stack_base_ - &here > kMostStack) throw Failure(joined("RecursionError: ", what, " are nested too deeply"));
}

// Evaluated arguments of a call; few ones need no memory of the arena.
class Evaluator::ArgumentValues {
 public:
  ArgumentValues(Evaluator& evaluator, const ArgumentNodes& nodes, Frame& frame, const Value* caller) {
    Arena& arena = evaluator.workspace.arena;
    const uint32_t count = nodes.positional.size, named = nodes.named.size + (caller != nullptr);
    Value* const values = count + named <= kFew ? few_ : arena.array<Value>(count + named);
    for (uint32_t i = 0; i < count; i++) values[i] = evaluator.eval(*nodes.positional[i], frame);
    arguments.positional = values;
    arguments.count = count;
    if (!named) return;
    const Symbol** const names = named <= kFew ? names_ : arena.array<const Symbol*>(named);
    for (uint32_t i = 0; i < nodes.named.size; i++) {
      names[i] = nodes.named[i].name;
      values[count + i] = evaluator.eval(*nodes.named[i].value, frame);
    }
    if (caller) {
      names[named - 1] = evaluator.workspace.symbols.intern("caller");
      values[count + named - 1] = *caller;
    }
    arguments.names = names;
    arguments.named = values + count;
    arguments.named_count = named;
  }
  ArgumentValues(const ArgumentValues&) = delete;
  ArgumentValues& operator=(const ArgumentValues&) = delete;

  Arguments arguments;

 private:
  static constexpr uint32_t kFew = 4;
  Value few_[kFew];
  const Symbol* names_[kFew];
};

// --- statements

void Evaluator::run(Nodes statements, uint16_t slots) {
  const char here = 0;
  stack_base_ = &here;
  Frame* const frame = workspace.arena.make<Frame>(Frame{workspace.arena.array<Value>(slots + 1u), nullptr});
  clear(*frame, {0, slots});
  run(statements, *frame);
}

Evaluator::Flow Evaluator::run(Nodes statements, Frame& frame) {
  for (const Node* const node : statements)
    if (const Flow flow = exec(*node, frame); flow != Flow::Next) return flow;
  return Flow::Next;
}

Evaluator::Flow Evaluator::exec(const Node& node, Frame& frame) {
  workspace.spend(1);
  line_ = node.line;
  switch (node.kind) {
    case NodeKind::Data: put(static_cast<const Data&>(node).text); return Flow::Next;
    case NodeKind::Output: emit(*static_cast<const Output&>(node).value, frame); return Flow::Next;
    case NodeKind::If: {
      const auto& branching = static_cast<const If&>(node);
      for (const Branch& branch : branching.branches)
        if (truth(eval(*branch.test, frame))) return run(branch.body, frame);
      return run(branching.otherwise, frame);
    }
    case NodeKind::Set: {
      const auto& set = static_cast<const Set&>(node);
      if (set.target->kind == Target::Kind::Variable)
        frame.slots[set.target->slot] = eval(*set.value, frame);
      else
        assign(*set.target, eval(*set.value, frame), frame);
      return Flow::Next;
    }
    case NodeKind::Break: return Flow::Break;
    case NodeKind::Continue: return Flow::Continue;
    default: return exec_rare(node, frame);
  }
}

__attribute__((noinline)) Evaluator::Flow Evaluator::exec_rare(const Node& node, Frame& frame) {
  switch (node.kind) {
    case NodeKind::For: {
      const auto& made = static_cast<const For&>(node);
      return loop(made, frame, eval(*made.items, frame), 0);
    }
    case NodeKind::SetBlock: {
      const auto& block = static_cast<const SetBlock&>(node);
      clear(frame, block.slots);
      Text* const text = capture(block.body, frame);
      const Value value = block.filter ? filtered(block.filter, text, frame) : Value::of_text(text);
      assign(*block.target, value, frame);
      return Flow::Next;
    }
    case NodeKind::Macro: {
      const auto& macro = static_cast<const Macro&>(node);
      frame.slots[macro.slot] = macro_value(macro, frame);
      return Flow::Next;
    }
    case NodeKind::CallBlock: {
      const auto& block = static_cast<const CallBlock&>(node);
      const Value caller = macro_value(*block.caller, frame);
      put(to_text(workspace, eval_call(*block.call, frame, &caller)));
      return Flow::Next;
    }
    case NodeKind::FilterBlock: {
      const auto& block = static_cast<const FilterBlock&>(node);
      clear(frame, block.slots);
      Text* const text = capture(block.body, frame);
      put(to_text(workspace, filtered(block.filter, text, frame)));
      return Flow::Next;
    }
    case NodeKind::With: {
      const auto& with = static_cast<const With&>(node);
      std::vector<Value> values;
      for (const Node* const value : with.values) values.push_back(eval(*value, frame));
      for (uint32_t i = 0; i < with.targets.size; i++) assign(*with.targets[i], values[i], frame);
      clear(frame, with.slots);
      return run(with.body, frame);
    }
    case NodeKind::Scope: {
      const auto& scope = static_cast<const Scope&>(node);
      clear(frame, scope.slots);
      return run(scope.body, frame);
    }
    case NodeKind::Generation: {
      const auto& scope = static_cast<const Scope&>(node);
      clear(frame, scope.slots);
      workspace.emit(workspace.leaf({"", 0}, kGenerationBegins, 0, 1));
      const Flow flow = run(scope.body, frame);
      workspace.emit(workspace.leaf({"", 0}, kGenerationEnds, 0, 1));
      return flow;
    }
    default: throw Failure(static_cast<const Broken&>(node).message);
  }
}

Value Evaluator::macro_value(const Macro& node, Frame& frame) {
  return Value::of(Kind::Macro, &Value::macro, workspace.arena.make<MacroValue>(MacroValue{&node, &frame}));
}

Text* Evaluator::capture(Nodes statements, Frame& frame) {
  Rope rope(workspace);
  run(statements, frame);
  return rope.finish();
}

// The sums of an output are written part by part, without being made.
void Evaluator::put_in_place(Text* text) {
  workspace.leaves(text, [&](Text* leaf) {
    if (leaf->origin != kFromTemplate || !leaf->size) return workspace.emit(leaf);
    const auto [found, is_new] = places_.try_emplace(media_);
    if (is_new) found->second = origins_.add_place(media_);
    workspace.emit(workspace.leaf({leaf->bytes, leaf->size}, found->second, 0, leaf->ascii, true));
  });
}

void Evaluator::emit(const Node& node, Frame& frame) {
  if (node.kind == NodeKind::Binary && static_cast<const Binary&>(node).op == Arithmetic::Add) {
    const auto& sum = static_cast<const Binary&>(node);
    const Value left = eval(*sum.left, frame), right = eval(*sum.right, frame);
    if (left.is_text() && right.is_text() && !left.detail && !right.detail) {
      put(left.text);
      put(right.text);
      return;
    }
    put(to_text(workspace, arithmetic(Arithmetic::Add, left, right)));
    return;
  }
  const Value value = eval(node, frame);
  put(value.is_text() ? value.text : to_text(workspace, value));
}

Value Evaluator::filtered(const Node* chain, Text* text, Frame& frame) {
  if (chain->kind != NodeKind::Filter) throw Failure(static_cast<const Broken*>(chain)->message);
  const auto& filter = static_cast<const FilterNode&>(*chain);
  const Value subject = filter.subject ? filtered(filter.subject, text, frame) : Value::of_text(text);
  return eval_filter(filter, frame, &subject);
}

void Evaluator::assign(const Target& target, const Value& value, Frame& frame) {
  switch (target.kind) {
    case Target::Kind::Variable: frame.slots[target.slot] = value; return;
    case Target::Kind::Attribute: {
      const Value object = eval(*target.object, frame);
      if (object.kind != Kind::Namespace) throw Failure("cannot assign attribute on non-namespace object");
      check_namespace_name(*target.symbol);
      set_name(workspace, *object.dict, target.symbol, value);
      return;
    }
    case Target::Kind::Tuple: {
      if (!value.is_sequence() && !value.is_text() && !value.is_undefined() && value.kind != Kind::Dict &&
          value.kind != Kind::View && value.kind != Kind::Generator)
        type_error("cannot unpack non-iterable ", type_name(value), " object");
      const List& items = *to_list(value);
      if (items.size < target.items.size)
        value_error("not enough values to unpack (expected ", target.items.size, ", got ", items.size, ")");
      if (items.size > target.items.size) value_error("too many values to unpack (expected ", target.items.size, ")");
      for (uint32_t i = 0; i < items.size; i++) assign(*target.items[i], items.items[i], frame);
    }
  }
}

// --- expressions

Value Evaluator::eval(const Node& node, Frame& frame) {
  workspace.steps++;
  switch (node.kind) {
    case NodeKind::Constant: return static_cast<const Constant&>(node).value;
    case NodeKind::Name: {
      const auto& name = static_cast<const Name&>(node);
      if (name.places.size && !name.places[0].functions_out) {
        const Value& value = frame.slots[name.places[0].slot];
        if (!value.is_missing()) return value;
      }
      return look_up(name, frame);
    }
    case NodeKind::LoopField: {
      const auto& made = static_cast<const LoopFieldNode&>(node);
      return frame.slots[made.slot].loop->field(*this, made.symbol->loop_field);
    }
    case NodeKind::Attribute: {
      const auto& made = static_cast<const Attribute&>(node);
      return attribute(eval(*made.object, frame), made.symbol);
    }
    case NodeKind::Item: {
      const auto& made = static_cast<const Item&>(node);
      const Value object = eval(*made.object, frame);
      if (made.symbol) return item(object, static_cast<const Constant*>(made.key)->value, made.symbol);
      return item(object, eval(*made.key, frame), nullptr);
    }
    case NodeKind::Not: return Value::boolean(!truth(eval(*static_cast<const Unary&>(node).operand, frame)));
    case NodeKind::And: {
      const auto& both = static_cast<const Binary&>(node);
      const Value left = eval(*both.left, frame);
      return truth(left) ? eval(*both.right, frame) : left;
    }
    case NodeKind::Or: {
      const auto& either = static_cast<const Binary&>(node);
      const Value left = eval(*either.left, frame);
      return truth(left) ? left : eval(*either.right, frame);
    }
    case NodeKind::Compare: {
      const auto& compare = static_cast<const Compare&>(node);
      if (compare.operators.size == 1 && compare.operators[0] <= Comparison::NotEqual) {
        const Value left = eval(*compare.first, frame), right = eval(*compare.others[0], frame);
        const bool wanted = compare.operators[0] == Comparison::Equal;
        if (left.is_text() && right.is_text() && left.text->bytes && right.text->bytes && left.text->size < 64)
          return Value::boolean((left.text->size == right.text->size &&
                                 !std::memcmp(left.text->bytes, right.text->bytes, left.text->size)) == wanted);
        return Value::boolean(equal(workspace, left, right) == wanted);
      }
      return eval_compare(compare, frame);
    }
    case NodeKind::Test: {
      const auto& test = static_cast<const TestNode&>(node);
      if (!test.arguments.positional.size && !test.arguments.named.size)
        return Value::boolean((*test.test)(*this, eval(*test.subject, frame), {}) != test.negated);
      return eval_rare(node, frame);
    }
    default: return eval_rare(node, frame);
  }
}

__attribute__((noinline)) Value Evaluator::look_up(const Name& node, Frame& frame) {
  for (const Place place : node.places) {
    const Frame* holder = &frame;
    for (uint16_t i = place.functions_out; i; i--) holder = holder->outer;
    if (!holder->slots[place.slot].is_missing()) return holder->slots[place.slot];
  }
  if (const Value* const input = inputs_.find(node.symbol)) return *input;
  if (const Function* const function = find_function(node.symbol->text))
    return Value::of(Kind::Function, &Value::function, function);
  return Value::undefined_name(node.symbol);
}

__attribute__((noinline)) Value Evaluator::eval_compare(const Compare& node, Frame& frame) {
  Value left = eval(*node.first, frame);
  for (uint32_t i = 0; i < node.operators.size; i++) {
    const Value right = eval(*node.others[i], frame);
    if (!holds(node.operators[i], left, right)) return Value::boolean(false);
    left = right;
  }
  return Value::boolean(true);
}

__attribute__((noinline)) Value Evaluator::eval_rare(const Node& node, Frame& frame) {
  switch (node.kind) {
    case NodeKind::Part: {
      const auto& made = static_cast<const Part&>(node);
      const Value object = eval(*made.object, frame);
      const auto bound = [&](const Node* bound) { return bound ? eval(*bound, frame) : Value::none(); };
      const Value start = bound(made.start), stop = bound(made.stop);
      return part(object, start, stop, bound(made.step));
    }
    case NodeKind::Conditional: {
      const auto& choice = static_cast<const Conditional&>(node);
      if (truth(eval(*choice.test, frame))) return eval(*choice.then, frame);
      if (choice.otherwise) return eval(*choice.otherwise, frame);
      return Value::undefined_hint("the inline if-expression evaluated to false and no else section was defined.");
    }
    case NodeKind::Concat: {
      Rope rope(workspace);
      for (const Node* const item : static_cast<const Sequence&>(node).items)
        rope.add(to_text(workspace, eval(*item, frame)));
      return Value::of_text(rope.finish());
    }
    case NodeKind::Binary: {
      const auto& made = static_cast<const Binary&>(node);
      const Value left = eval(*made.left, frame);
      return arithmetic(made.op, left, eval(*made.right, frame));
    }
    case NodeKind::Negative:
    case NodeKind::Positive: {
      const Value value = eval(*static_cast<const Unary&>(node).operand, frame);
      if (value.is_undefined()) fail_undefined(value);
      const bool minus = node.kind == NodeKind::Negative;
      if (!value.is_number())
        type_error("bad operand type for unary ", minus ? "-" : "+", ": '", type_name(value), "'");
      if (minus) return negated(workspace, value);
      return value.kind == Kind::Bool ? Value::of_int(value.integer) : value;
    }
    case NodeKind::List:
    case NodeKind::Tuple: {
      const Nodes items = static_cast<const Sequence&>(node).items;
      List* const list = List::make(workspace, items.size);
      for (const Node* const item : items) list->add(workspace, eval(*item, frame));
      return node.kind == NodeKind::Tuple ? Value::of_tuple(list) : Value::of_list(list);
    }
    case NodeKind::Dict: {
      const Nodes items = static_cast<const Sequence&>(node).items;
      Dict* const dict = Dict::make(workspace, items.size / 2);
      for (uint32_t i = 0; i < items.size; i += 2) {
        const Value key = eval(*items[i], frame);
        dict->set(workspace, key, eval(*items[i + 1], frame));
      }
      return Value::of_dict(dict);
    }
    case NodeKind::Test: {
      const auto& test = static_cast<const TestNode&>(node);
      const Value subject = eval(*test.subject, frame);
      const ArgumentValues values(*this, test.arguments, frame, nullptr);
      return Value::boolean((*test.test)(*this, subject, values.arguments) != test.negated);
    }
    case NodeKind::Filter: return eval_filter(static_cast<const FilterNode&>(node), frame, nullptr);
    case NodeKind::Call: return eval_call(static_cast<const Call&>(node), frame, nullptr);
    default: line_ = node.line; throw Failure(static_cast<const Broken&>(node).message);
  }
}

__attribute__((noinline)) Value Evaluator::eval_filter(const FilterNode& node, Frame& frame, const Value* given) {
  const Value subject = given ? *given : eval(*node.subject, frame);
  const ArgumentValues values(*this, node.arguments, frame, nullptr);
  workspace.spend(1);
  line_ = node.line;
  return (*node.filter)(*this, subject, values.arguments);
}

__attribute__((noinline)) Value Evaluator::eval_call(const Call& node, Frame& frame, const Value* caller) {
  workspace.spend(1);
  if (node.callee->kind == NodeKind::Attribute) {
    const auto& attribute_node = static_cast<const Attribute&>(*node.callee);
    const Value object = eval(*attribute_node.object, frame);
    if (const Method* const method = method_of(object, attribute_node.symbol); method && !method->changes) {
      const ArgumentValues values(*this, node.arguments, frame, caller);
      line_ = node.line;
      return (*method)(*this, object, values.arguments);
    }
    const Value callee = attribute(object, attribute_node.symbol);
    const ArgumentValues values(*this, node.arguments, frame, caller);
    line_ = node.line;
    return call(callee, values.arguments);
  }
  const Value callee = eval(*node.callee, frame);
  const ArgumentValues values(*this, node.arguments, frame, caller);
  line_ = node.line;
  const Value result = call(callee, values.arguments);
  line_ = node.line;
  return result;
}

}  // namespace tokenweir::templates
