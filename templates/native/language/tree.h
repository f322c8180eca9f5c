// The tree of a template. Nodes live in the template's arena; `kind` tells the struct.
#pragma once

#include <initializer_list>

#include "values/bigint.h"
#include "values/value.h"

namespace tokenweir::templates {

struct Filter;
struct Test;

enum class NodeKind : uint8_t {
  // Expressions
  Constant,
  Name,
  Attribute,
  Item,
  Part,
  Not,
  And,
  Or,
  Conditional,
  Compare,
  Binary,
  Negative,
  Positive,
  Concat,
  List,
  Tuple,
  Dict,
  LoopField,
  Call,
  Filter,
  Test,
  Broken,
  // Statements
  Data,
  Output,
  If,
  For,
  Set,
  SetBlock,
  Macro,
  CallBlock,
  FilterBlock,
  With,
  Scope,
  Generation,
  Break,
  Continue,
  Fail,
};

struct Node {
  NodeKind kind;
  uint32_t line;
};

using Nodes = Slice<Node*>;

struct Constant : Node {
  Value value;
};

// A place where a variable may live: so many functions further out.
struct Place {
  uint16_t functions_out, slot;
};

struct Name : Node {
  Symbol* symbol;
  Slice<Place> places;  // the innermost first
};

struct Attribute : Node {
  Node* object;
  Symbol* symbol;
};

struct LoopFieldNode : Node {
  Symbol* symbol;
  uint16_t slot;
};

struct Item : Node {
  Node* object;
  Node* key;
  Symbol* symbol;  // of a key that is a constant text
};

struct Part : Node {  // object[start:stop:step]
  Node* object;
  Node *start, *stop, *step;  // null if absent
};

struct Unary : Node {
  Node* operand;
};

enum class Comparison : uint8_t { Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual, In, NotIn };

struct Compare : Node {
  Node* first;
  Slice<Comparison> operators;
  Nodes others;
};

struct Binary : Node {  // And, Or, and Binary with an operator
  Arithmetic op;
  Node *left, *right;
};

struct Conditional : Node {
  Node *test, *then, *otherwise;  // `otherwise` may be null
};

struct Sequence : Node {  // List, Tuple, Concat; of Dict, keys and values in turn
  Nodes items;
};

struct Keyword {
  Symbol* name;
  Node* value;
};

struct ArgumentNodes {
  Nodes positional;
  Slice<Keyword> named;
};

struct Call : Node {
  Node* callee;
  ArgumentNodes arguments;
};

struct FilterNode : Node {
  Node* subject;  // null: the text of a `filter` block
  const Filter* filter;
  ArgumentNodes arguments;
};

struct TestNode : Node {
  Node* subject;
  const Test* test;
  bool negated;
  ArgumentNodes arguments;
};

// An expression that fails when it is reached.
struct Broken : Node {
  // The name of a filter or test that Jinja does not know: refused at load, except in the branch of an `if`.
  bool is_unknown;
  const char* message;
};

// Target of an assignment.
struct Target {
  enum class Kind : uint8_t { Variable, Attribute, Tuple } kind;
  uint16_t slot;  // of a variable
  uint32_t line;
  Symbol* symbol;        // of the variable, or of the attribute
  Node* object;          // of an attribute
  Slice<Target*> items;  // of a tuple
};

// Calls `visit` for each expression right below an expression, in the order of evaluation.
template <class Visit>
void each_operand(const Node& node, Visit&& visit) {
  const auto nodes = [&](std::initializer_list<Node*> operands) {
    for (Node* const operand : operands)
      if (operand) visit(operand);
  };
  const auto with_arguments = [&](Node* first, const ArgumentNodes& arguments) {
    nodes({first});
    for (Node* const argument : arguments.positional) visit(argument);
    for (const Keyword& keyword : arguments.named) visit(keyword.value);
  };
  switch (node.kind) {
    case NodeKind::Attribute: return nodes({static_cast<const Attribute&>(node).object});
    case NodeKind::Item: return nodes({static_cast<const Item&>(node).object, static_cast<const Item&>(node).key});
    case NodeKind::Part: {
      const auto& part = static_cast<const Part&>(node);
      return nodes({part.object, part.start, part.stop, part.step});
    }
    case NodeKind::Not:
    case NodeKind::Negative:
    case NodeKind::Positive: return nodes({static_cast<const Unary&>(node).operand});
    case NodeKind::And:
    case NodeKind::Or:
    case NodeKind::Binary:
      return nodes({static_cast<const Binary&>(node).left, static_cast<const Binary&>(node).right});
    case NodeKind::Conditional: {
      const auto& choice = static_cast<const Conditional&>(node);
      return nodes({choice.test, choice.then, choice.otherwise});
    }
    case NodeKind::Compare:
      visit(static_cast<const Compare&>(node).first);
      for (Node* const other : static_cast<const Compare&>(node).others) visit(other);
      return;
    case NodeKind::Concat:
    case NodeKind::List:
    case NodeKind::Tuple:
    case NodeKind::Dict:
      for (Node* const item : static_cast<const Sequence&>(node).items) visit(item);
      return;
    case NodeKind::Call: {
      const auto& call = static_cast<const Call&>(node);
      return with_arguments(call.callee, call.arguments);
    }
    case NodeKind::Filter: {
      const auto& filter = static_cast<const FilterNode&>(node);
      return with_arguments(filter.subject, filter.arguments);
    }
    case NodeKind::Test: {
      const auto& test = static_cast<const TestNode&>(node);
      return with_arguments(test.subject, test.arguments);
    }
    default: return;
  }
}

struct Data : Node {
  Text* text;
};

struct Output : Node {
  Node* value;
};

struct Branch {
  Node* test;
  Nodes body;
};

struct If : Node {
  Slice<Branch> branches;
  Nodes otherwise;
};

// Slots that a scope clears when it is entered.
struct SlotRange {
  uint16_t begin, end;
};

struct For : Node {
  Target* target;
  Target* test_target;  // the same in the scope of the test
  Node* items;
  Node* test;  // null without one
  Nodes body, otherwise;
  bool recursive;
  uint16_t loop_slot;
  SlotRange body_slots, else_slots;
  SlotRange all_slots;  // of the loop and all scopes in it
};

struct Set : Node {
  Target* target;
  Node* value;
};

struct SetBlock : Node {
  Target* target;
  Node* filter;  // a chain of FilterNode; null without one
  Nodes body;
  SlotRange slots;
};

struct Macro : Node {
  Symbol* name;
  Slice<Symbol*> parameters;
  Slice<uint16_t> parameter_slots;
  Slice<Node*> defaults;  // of the last parameters
  Nodes body;
  uint16_t slot;   // of its own name
  uint16_t slots;  // that a call needs
  // Slots of the implicit variables that the body reads, or kNoSlot.
  uint16_t caller_slot, varargs_slot, kwargs_slot;
  bool explicit_caller;  // `caller` is a parameter
};
inline constexpr uint16_t kNoSlot = 0xFFFF;

struct CallBlock : Node {
  Call* call;
  Macro* caller;
};

struct FilterBlock : Node {
  Node* filter;
  Nodes body;
  SlotRange slots;
};

struct With : Node {
  Slice<Target*> targets;
  Nodes values;
  Nodes body;
  SlotRange slots;
};

struct Scope : Node {  // Scope and Generation
  Nodes body;
  SlotRange slots;
};

}  // namespace tokenweir::templates
