#include "language/scopes.h"

#include <map>
#include <utility>
#include <vector>

#include "values/method.h"

namespace tokenweir::templates {
namespace {

struct Function {
  uint16_t slots = 0;
  Macro* macro = nullptr;  // null: the root
};

struct StaticScope {
  StaticScope* outer;
  Function* function;
  bool begins_function = false;
  For* loop = nullptr;
  std::map<const Symbol*, uint16_t> slots = {};
  std::set<const Symbol*> assigned = {};  // what is set by now on every way through the scope
};

class Resolver {
 public:
  explicit Resolver(Workspace& workspace)
      : workspace_(workspace),
        loop_(workspace.symbols.intern("loop")),
        caller_(workspace.symbols.intern("caller")),
        varargs_(workspace.symbols.intern("varargs")),
        kwargs_(workspace.symbols.intern("kwargs")) {}

  Resolved run(Nodes statements) {
    Function root;
    StaticScope scope{nullptr, &root, true};
    declare(statements, scope);
    body(statements, scope);
    return {root.slots, std::move(variables_)};
  }

 private:
  uint16_t new_slot(StaticScope& scope, uint32_t line) {
    if (scope.function->slots == kNoSlot - 1) throw Failure("the template has too many variables", line);
    return scope.function->slots++;
  }

  uint16_t slot(StaticScope& scope, const Symbol* symbol, uint32_t line) {
    if (const auto found = scope.slots.find(symbol); found != scope.slots.end()) return found->second;
    return scope.slots[symbol] = new_slot(scope, line);
  }

  // Gives slots to all names that statements set in their own scope.
  void declare(Nodes statements, StaticScope& scope) {
    for (Node* const node : statements) {
      switch (node->kind) {
        case NodeKind::Set: declare(static_cast<Set*>(node)->target, scope); break;
        case NodeKind::SetBlock: declare(static_cast<SetBlock*>(node)->target, scope); break;
        case NodeKind::Macro: slot(scope, static_cast<Macro*>(node)->name, node->line); break;
        case NodeKind::If: {
          auto* const branching = static_cast<If*>(node);
          for (const Branch& branch : branching->branches) declare(branch.body, scope);
          declare(branching->otherwise, scope);
          break;
        }
        default: break;
      }
    }
  }

  void declare(Target* target, StaticScope& scope) {
    if (target->kind == Target::Kind::Tuple)
      for (Target* const item : target->items) declare(item, scope);
    if (target->kind != Target::Kind::Variable) return;
    if (target->symbol == loop_)
      for (const StaticScope* s = &scope; s && !s->begins_function; s = s->outer)
        if (s->loop) throw Failure("Can't assign to special loop variable in for-loop", target->line);
    target->slot = slot(scope, target->symbol, target->line);
  }

  // A target is assigned: its names are set from here on.
  void assign(Target* target, StaticScope& scope) {
    switch (target->kind) {
      case Target::Kind::Variable: scope.assigned.insert(target->symbol); break;
      case Target::Kind::Attribute: expression(target->object, scope); break;
      case Target::Kind::Tuple:
        for (Target* const item : target->items) assign(item, scope);
    }
  }

  void body(Nodes statements, StaticScope& scope) {
    for (Node* const node : statements) statement(node, scope);
  }

  // A scope within `outer`; declares what its statements set, and says which slots to clear at its beginning.
  SlotRange inner(Nodes statements, StaticScope& scope) {
    const Branching apart(*this, false);
    const uint16_t begin = scope.function->slots;
    declare(statements, scope);
    const SlotRange range{begin, scope.function->slots};
    body(statements, scope);
    return range;
  }

  void statement(Node* node, StaticScope& scope) {
    switch (node->kind) {
      case NodeKind::Output: return expression(static_cast<Output*>(node)->value, scope);
      case NodeKind::If: return branches(*static_cast<If*>(node), scope);
      case NodeKind::For: return loop(*static_cast<For*>(node), scope);
      case NodeKind::Set: {
        auto* const set = static_cast<Set*>(node);
        expression(set->value, scope);
        return assign(set->target, scope);
      }
      case NodeKind::SetBlock: {
        auto* const block = static_cast<SetBlock*>(node);
        StaticScope in{&scope, scope.function};
        block->slots = inner(block->body, in);
        const Branching apart(*this, false);
        if (block->filter) expression(block->filter, in);
        return assign(block->target, scope);
      }
      case NodeKind::Macro: {
        auto* const made = static_cast<Macro*>(node);
        made->slot = slot(scope, made->name, made->line);
        scope.assigned.insert(made->name);
        return macro(*made, scope);
      }
      case NodeKind::CallBlock: {
        auto* const block = static_cast<CallBlock*>(node);
        expression(block->call, scope);
        return macro(*block->caller, scope);
      }
      case NodeKind::FilterBlock: {
        auto* const block = static_cast<FilterBlock*>(node);
        StaticScope in{&scope, scope.function};
        block->slots = inner(block->body, in);
        const Branching apart(*this, false);
        return expression(block->filter, in);
      }
      case NodeKind::With: {
        auto* const with = static_cast<With*>(node);
        for (Node* const value : with->values) expression(value, scope);
        StaticScope in{&scope, scope.function};
        for (Target* const target : with->targets) {
          declare(target, in);
          assign(target, in);
        }
        with->slots = inner(with->body, in);
        return;
      }
      case NodeKind::Scope:
      case NodeKind::Generation: {
        StaticScope in{&scope, scope.function};
        auto* const made = static_cast<Scope*>(node);
        made->slots = inner(made->body, in);
        return;
      }
      default: return;
    }
  }

  void branches(If& node, StaticScope& scope) {
    const Branching within(*this, true);
    const std::set<const Symbol*> before = scope.assigned;
    std::set<const Symbol*> always;
    bool first = true;
    const auto branch = [&](Nodes statements) {
      body(statements, scope);
      if (first)
        always = scope.assigned;
      else
        std::erase_if(always, [&](const Symbol* s) { return !scope.assigned.contains(s); });
      first = false;
      scope.assigned = before;
    };
    for (const Branch& one : node.branches) {
      expression(one.test, scope);
      branch(one.body);
    }
    branch(node.otherwise);
    scope.assigned = std::move(always);
  }

  void loop(For& node, StaticScope& scope) {
    expression(node.items, scope);
    const uint16_t begin = scope.function->slots;
    if (node.test) {
      StaticScope in{&scope, scope.function};
      declare(node.test_target, in);
      assign(node.test_target, in);
      const Branching apart(*this, false);
      expression(node.test, in);
    }
    StaticScope in{&scope, scope.function};
    declare(node.target, in);
    if (in.slots.contains(loop_)) throw Failure("Can't assign to special loop variable in for-loop target", node.line);
    in.loop = &node;
    node.loop_slot = new_slot(in, node.line);
    in.slots[loop_] = node.loop_slot;
    assign(node.target, in);
    in.assigned.insert(loop_);
    node.body_slots = inner(node.body, in);
    StaticScope otherwise{&scope, scope.function};
    node.else_slots = inner(node.otherwise, otherwise);
    node.all_slots = {begin, scope.function->slots};
  }

  void macro(Macro& node, StaticScope& scope) {
    const Branching apart(*this, false);
    Function function{0, &node};
    node.caller_slot = node.varargs_slot = node.kwargs_slot = kNoSlot;
    StaticScope in{&scope, &function, true};
    std::vector<uint16_t> slots;
    for (const Symbol* const parameter : node.parameters) {
      slots.push_back(slot(in, parameter, node.line));
      in.assigned.insert(parameter);
      node.explicit_caller |= parameter == caller_;
    }
    node.parameter_slots = Slice<uint16_t>::copy(workspace_.arena, slots);
    if (node.explicit_caller && node.defaults.size < node.parameters.size) {
      const size_t at = node.parameters.size - node.defaults.size;
      for (size_t i = 0; i < at; i++)
        if (node.parameters[i] == caller_)
          throw Failure(
              "When defining macros or call blocks the special \"caller\" argument must be omitted or be given a "
              "default.",
              node.line);
    }
    declare(node.body, in);
    for (Node* const value : node.defaults) expression(value, in);
    body(node.body, in);
    node.slots = function.slots;
  }

  void expression(Node* node, StaticScope& scope) {
    if (!node) return;
    switch (node->kind) {
      case NodeKind::Name: return name(*static_cast<Name*>(node), scope);
      case NodeKind::Attribute: return attribute(node, scope);
      case NodeKind::Conditional: {
        const Branching within(*this, true);
        return operands(*node, scope);
      }
      case NodeKind::Broken:
        if (const auto* const broken = static_cast<Broken*>(node); broken->is_unknown && !in_branch_)
          throw Failure(broken->message, broken->line);
        return;
      default: return operands(*node, scope);
    }
  }

  void operands(const Node& node, StaticScope& scope) {
    each_operand(node, [&](Node* operand) { expression(operand, scope); });
  }

  // `loop.index` and other fields of a loop in this function need no look-up.
  void attribute(Node* node, StaticScope& scope) {
    auto* const made = static_cast<Attribute*>(node);
    if (!made->symbol->described) describe(*made->symbol);
    if (made->object->kind == NodeKind::Name && static_cast<Name*>(made->object)->symbol == loop_ &&
        made->symbol->loop_field != LoopField::None) {
      for (const StaticScope* s = &scope; s; s = s->begins_function ? nullptr : s->outer) {
        const auto found = s->slots.find(loop_);
        if (found == s->slots.end()) continue;
        if (!s->loop) break;
        static_assert(sizeof(LoopFieldNode) <= sizeof(Attribute));
        Symbol* const symbol = made->symbol;
        auto* const field = static_cast<LoopFieldNode*>(node);
        field->kind = NodeKind::LoopField;
        field->symbol = symbol;
        field->slot = found->second;
        return;
      }
    }
    expression(made->object, scope);
  }

  void name(Name& node, StaticScope& scope) {
    std::vector<Place> places;
    bool certain = false;
    uint16_t functions_out = 0;
    for (StaticScope* s = &scope; s; s = s->outer) {
      auto found = s->slots.find(node.symbol);
      if (found == s->slots.end() && s->begins_function && s->function->macro && places.empty() &&
          implicit(*s, node.symbol))
        found = s->slots.find(node.symbol);
      if (found != s->slots.end()) {
        places.push_back({functions_out, found->second});
        certain |= functions_out > 0 || s->assigned.contains(node.symbol);
      }
      functions_out += s->begins_function;
    }
    node.places = Slice<Place>::copy(workspace_.arena, places);
    if (!certain) variables_.insert(node.symbol->text);
  }

  // Gives a macro the slot of `caller`, `varargs` or `kwargs` when its body mentions it.
  bool implicit(StaticScope& scope, const Symbol* symbol) {
    Macro& macro = *scope.function->macro;
    uint16_t* const wanted = symbol == caller_    ? &macro.caller_slot
                             : symbol == varargs_ ? &macro.varargs_slot
                             : symbol == kwargs_  ? &macro.kwargs_slot
                                                  : nullptr;
    if (!wanted) return false;
    *wanted = slot(scope, symbol, macro.line);
    scope.assigned.insert(symbol);
    return true;
  }

  // Jinja refuses unknown filters and tests at load, but not in the branches of an `if` of the same scope.
  struct Branching {
    Branching(Resolver& resolver, bool inside)
        : resolver(resolver), before(std::exchange(resolver.in_branch_, inside)) {}
    ~Branching() { resolver.in_branch_ = before; }
    Resolver& resolver;
    const bool before;
  };

  bool in_branch_ = false;
  Workspace& workspace_;
  Symbol *const loop_, *const caller_, *const varargs_, *const kwargs_;
  std::set<std::string_view> variables_;
};

}  // namespace

Resolved resolve_scopes(Workspace& workspace, Nodes statements) { return Resolver(workspace).run(statements); }

}  // namespace tokenweir::templates
