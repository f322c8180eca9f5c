#include "language/analysis.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "values/filter.h"

namespace tokenweir::templates {
namespace {

using NodeList = std::vector<const Node*>;

void add_all(Nodes nodes, NodeList& out);

// The nodes right below one.
NodeList below(const Node& node) {
  NodeList out;
  switch (node.kind) {
    case NodeKind::Output: out = {static_cast<const Output&>(node).value}; break;
    case NodeKind::If:
      for (const Branch& branch : static_cast<const If&>(node).branches) {
        out.push_back(branch.test);
        add_all(branch.body, out);
      }
      add_all(static_cast<const If&>(node).otherwise, out);
      break;
    case NodeKind::For: {
      const auto& loop = static_cast<const For&>(node);
      out = {loop.items, loop.test};
      add_all(loop.body, out);
      add_all(loop.otherwise, out);
      break;
    }
    case NodeKind::Set: out = {static_cast<const Set&>(node).value}; break;
    case NodeKind::SetBlock:
      out = {static_cast<const SetBlock&>(node).filter};
      add_all(static_cast<const SetBlock&>(node).body, out);
      break;
    case NodeKind::Macro:
      for (const Node* const value : static_cast<const Macro&>(node).defaults) out.push_back(value);
      add_all(static_cast<const Macro&>(node).body, out);
      break;
    case NodeKind::CallBlock:
      out = {static_cast<const CallBlock&>(node).call, static_cast<const CallBlock&>(node).caller};
      break;
    case NodeKind::FilterBlock:
      out = {static_cast<const FilterBlock&>(node).filter};
      add_all(static_cast<const FilterBlock&>(node).body, out);
      break;
    case NodeKind::With:
      add_all(static_cast<const With&>(node).values, out);
      add_all(static_cast<const With&>(node).body, out);
      break;
    case NodeKind::Scope:
    case NodeKind::Generation: add_all(static_cast<const Scope&>(node).body, out); break;
    default: each_operand(node, [&](const Node* operand) { out.push_back(operand); });
  }
  std::erase(out, nullptr);
  return out;
}

void add_all(Nodes nodes, NodeList& out) {
  for (const Node* const node : nodes) out.push_back(node);
}

NodeList all_nodes(Nodes statements) {
  NodeList all, waiting;
  add_all(statements, waiting);
  while (!waiting.empty()) {
    const Node* const node = waiting.back();
    waiting.pop_back();
    all.push_back(node);
    for (const Node* const child : below(*node)) waiting.push_back(child);
  }
  return all;
}

template <class T>
const T* as(const Node* node, NodeKind kind) {
  return node && node->kind == kind ? static_cast<const T*>(node) : nullptr;
}

bool is_text(const Node* node, std::string_view text) {
  const auto* const constant = as<Constant>(node, NodeKind::Constant);
  return constant && constant->value.is_text() &&
         std::string_view(constant->value.text->bytes, constant->value.text->size) == text;
}

// The method call `object.name(...)`, or null.
const Attribute* called_method(const Node* node, std::string_view name) {
  const auto* const call = as<Call>(node, NodeKind::Call);
  const auto* const method = call ? as<Attribute>(call->callee, NodeKind::Attribute) : nullptr;
  return method && method->symbol->text == name ? method : nullptr;
}

// The expressions that stand for some object's field, directly or through variables and parameters of macros.
//
// Variables are told apart by name only, without their scopes. That finds all loops of a template and at worst one that is
// not over the field; vLLM's detection has the same limits.
class FieldValues {
 public:
  FieldValues(const NodeList& nodes, std::string_view key) : key_(key) {
    for (const Node* const node : nodes)
      if (const auto* const macro = as<Macro>(node, NodeKind::Macro)) macros_.emplace(macro->name, macro);
    for (int round = 0; round < kRounds; round++) {
      const size_t before = names_.size();
      for (const Node* const node : nodes) follow(*node);
      if (names_.size() == before) break;
    }
  }

  bool includes(const Node* node) const {
    if (!node) return false;
    switch (node->kind) {
      case NodeKind::Name: return names_.contains(static_cast<const Name*>(node)->symbol->text);
      case NodeKind::Attribute: return static_cast<const Attribute*>(node)->symbol->text == key_;
      case NodeKind::Item: return is_text(static_cast<const Item*>(node)->key, key_);
      case NodeKind::Part: return includes(static_cast<const Part*>(node)->object);
      case NodeKind::Call: {
        const Nodes arguments = static_cast<const Call*>(node)->arguments.positional;
        return called_method(node, "get") && arguments.size && is_text(arguments[0], key_);
      }
      case NodeKind::Filter: {
        const auto* const filter = static_cast<const FilterNode*>(node);
        for (const std::string_view name : {"trim", "list", "safe", "default", "selectattr"})
          if (filter->filter->name == name) return includes(filter->subject);
        return false;
      }
      case NodeKind::Conditional:
        return includes(static_cast<const Conditional*>(node)->then) ||
               includes(static_cast<const Conditional*>(node)->otherwise);
      case NodeKind::Or:
        return includes(static_cast<const Binary*>(node)->left) || includes(static_cast<const Binary*>(node)->right);
      default: return false;
    }
  }

 private:
  // Adds the names that a node gives a value to.
  void follow(const Node& node) {
    if (const auto* const set = as<Set>(&node, NodeKind::Set)) {
      if (set->target->kind == Target::Kind::Variable && includes(set->value)) names_.insert(set->target->symbol->text);
    } else if (const auto* const call = as<Call>(&node, NodeKind::Call)) {
      const auto* const callee = as<Name>(call->callee, NodeKind::Name);
      const auto called = callee ? macros_.find(callee->symbol) : macros_.end();
      if (called == macros_.end()) return;
      const Macro& macro = *called->second;
      for (uint32_t i = 0; i < std::min(macro.parameters.size, call->arguments.positional.size); i++)
        if (includes(call->arguments.positional[i])) names_.insert(macro.parameters[i]->text);
    }
  }

  static constexpr int kRounds = 8;  // of following names to other names; two find all in templates of real models

  const std::string_view key_;
  std::set<std::string_view> names_;
  std::map<const Symbol*, const Macro*> macros_;
};

// The object whose members an expression gives one by one, or null.
const Node* owner_of(const Node* members) {
  if (const Attribute* const method = called_method(members, "items")) return method->object;
  const auto* const filter = as<FilterNode>(members, NodeKind::Filter);
  return filter && (filter->filter->name == "items" || filter->filter->name == "dictsort") ? filter->subject : nullptr;
}

}  // namespace

bool iterates_over_content(Nodes statements) {
  const NodeList nodes = all_nodes(statements);
  const FieldValues content(nodes, "content");
  return std::any_of(nodes.begin(), nodes.end(), [&](const Node* node) {
    const auto* const loop = as<For>(node, NodeKind::For);
    return loop && content.includes(loop->items);
  });
}

// One that writes an object's members one by one, or somewhere makes JSON of it without looking, does better with the
// object, whatever else it takes; one that only adds the arguments to text fails with it.
std::string_view argument_form(Nodes statements) {
  const NodeList nodes = all_nodes(statements);
  const FieldValues arguments(nodes, "arguments");
  bool members = false, is_string = false, is_mapping = false, added = false, written = false, json = false;
  for (const Node* const node : nodes) {
    if (const auto* const loop = as<For>(node, NodeKind::For)) members |= arguments.includes(owner_of(loop->items));
    if (const auto* const test = as<TestNode>(node, NodeKind::Test); test && arguments.includes(test->subject)) {
      is_string |= test->test->name == "string";
      is_mapping |= test->test->name == "mapping";
    }
    if (const auto* const sum = as<Binary>(node, NodeKind::Binary); sum && sum->op == Arithmetic::Add)
      added |= arguments.includes(sum->left) || arguments.includes(sum->right);
    if (const auto* const joined = as<Sequence>(node, NodeKind::Concat))
      for (const Node* const item : joined->items) written |= arguments.includes(item);
    if (const auto* const output = as<Output>(node, NodeKind::Output)) written |= arguments.includes(output->value);
    if (const auto* const filter = as<FilterNode>(node, NodeKind::Filter))
      json |= filter->filter->name == "tojson" && arguments.includes(filter->subject);
  }
  if (members) return "object";
  if (is_string || ((added || written) && is_mapping)) return "either";
  if (json) return "object";
  return added ? "text" : written ? "either" : "object";
}

bool marks_generation(Nodes statements) {
  const NodeList nodes = all_nodes(statements);
  return std::any_of(nodes.begin(), nodes.end(), [](const Node* node) { return node->kind == NodeKind::Generation; });
}

}  // namespace tokenweir::templates
