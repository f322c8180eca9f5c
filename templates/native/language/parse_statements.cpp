// Statements.
#include <algorithm>
#include <utility>

#include "language/parser.h"

namespace tokenweir::templates {

bool Parser::at_end(Ends ends) const {
  if (current().type != Token::Type::BlockBegin) return false;
  return std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return ahead().names(end); });
}

Nodes Parser::statements(Ends ends) {
  Nesting nesting(*this);
  std::vector<Node*> nodes;
  while (!at_end(ends)) {
    switch (current().type) {
      case Token::Type::End:
        if (ends.size() == 0) return slice(nodes);
        fail("Unexpected end of template. Jinja was looking for the following tags: '" + std::string(*ends.begin()) +
             "'.");
      case Token::Type::Data: {
        Data* const node = make<Data>(NodeKind::Data);
        node->text = constant_text(current().text);
        at_++;
        nodes.push_back(node);
        break;
      }
      case Token::Type::VariableBegin: {
        Output* const node = make<Output>(NodeKind::Output);
        at_++;
        node->value = tuple(true);
        if (current().type != Token::Type::VariableEnd) fail_unexpected("end of print statement");
        at_++;
        nodes.push_back(node);
        break;
      }
      default: {
        at_++;
        nodes.push_back(statement());
        if (current().type != Token::Type::BlockEnd) fail_unexpected("end of statement block");
        at_++;
      }
    }
  }
  return slice(nodes);
}

std::string_view Parser::body(Ends ends, Nodes& nodes) {
  skip_op(":");
  if (current().type != Token::Type::BlockEnd) fail_unexpected("end of statement block");
  at_++;
  nodes = statements(ends);
  at_ += 2;
  return tokens_[at_ - 1].text;
}

// A body in which `break` does not end a loop outside.
void Parser::function_body(Ends ends, Nodes& nodes) {
  const int loops = std::exchange(loops_, 0);
  body(ends, nodes);
  loops_ = loops;
}

Node* Parser::statement() {
  Nesting nesting(*this);
  if (current().type != Token::Type::Name) fail("tag name expected");
  const std::string& tag = current().text;
  const auto plain = [&](NodeKind kind) {
    Node* const node = make<Node>(kind);
    at_++;
    return node;
  };
  if ((tag == "break" || tag == "continue") && !loops_) fail("'" + tag + "' outside loop");
  if (tag == "if") return if_statement();
  if (tag == "for") return for_statement();
  if (tag == "set") return set_statement();
  if (tag == "macro") return macro_statement();
  if (tag == "call") return call_statement();
  if (tag == "filter") return filter_statement();
  if (tag == "with") return with_statement();
  if (tag == "print") return print_statement();
  if (tag == "break") return plain(NodeKind::Break);
  if (tag == "continue") return plain(NodeKind::Continue);
  if (tag == "generation") {
    Scope* const node = make<Scope>(NodeKind::Generation);
    at_++;
    function_body({"endgeneration"}, node->body);
    return node;
  }
  for (const std::string_view other : {"include", "import", "from", "extends", "block", "autoescape"})
    if (tag == other) return unsupported(other);
  fail("Encountered unknown tag '" + tag + "'.");
}

Node* Parser::if_statement() {
  If* const node = make<If>(NodeKind::If);
  std::vector<Branch> branches;
  std::string_view end = "elif";
  while (end == "elif") {
    if (branches.empty()) at_++;
    Branch branch{tuple(false), {}};
    end = body({"elif", "else", "endif"}, branch.body);
    branches.push_back(branch);
  }
  if (end == "else") body({"endif"}, node->otherwise);
  node->branches = slice(branches);
  return node;
}

Target* Parser::one_target(bool attributes) {
  Target* const made = workspace_.arena.make<Target>(Target{});
  made->line = current().line;
  if (skip_op("(")) {
    Target* const inner = target(attributes);
    expect_op(")");
    return inner;
  }
  for (const std::string_view constant : {"true", "false", "none", "True", "False", "None"})
    if (at_name(constant)) fail("can't assign to 'const'");
  Symbol* const symbol = name("name");
  if (attributes && skip_op(".")) {
    Name* const object = make<Name>(NodeKind::Name);
    object->symbol = symbol;
    made->kind = Target::Kind::Attribute;
    made->object = object;
    made->symbol = name("name");
    return made;
  }
  made->kind = Target::Kind::Variable;
  made->symbol = symbol;
  return made;
}

Target* Parser::target(bool attributes) {
  Nesting nesting(*this);
  Target* const first = one_target(attributes);
  if (!at_op(",")) return first;
  std::vector<Target*> items{first};
  while (skip_op(",")) {
    if (at_op("=") || at_op(")")) break;
    items.push_back(one_target(attributes));
  }
  Target* const made = workspace_.arena.make<Target>(Target{});
  made->kind = Target::Kind::Tuple;
  made->line = first->line;
  made->items = slice(items);
  return made;
}

Target* Parser::copied(const Target* target) {
  Target* const made = workspace_.arena.make<Target>(*target);
  std::vector<Target*> items;
  for (const Target* const item : target->items) items.push_back(copied(item));
  made->items = slice(items);
  return made;
}

Node* Parser::for_statement() {
  For* const node = make<For>(NodeKind::For);
  at_++;
  node->target = target(false);
  expect_name("in");
  node->items = tuple(false);
  if (skip_name("if")) {
    node->test = expression();
    node->test_target = copied(node->target);
  }
  node->recursive = skip_name("recursive");
  loops_++;
  const std::string_view end = body({"endfor", "else"}, node->body);
  loops_--;
  if (end == "else") body({"endfor"}, node->otherwise);
  return node;
}

Node* Parser::set_statement() {
  const uint32_t line = current().line;
  at_++;
  Target* const to = target(true);
  if (skip_op("=")) {
    Set* const node = make<Set>(NodeKind::Set);
    node->line = line;
    node->target = to;
    node->value = tuple(true);
    return node;
  }
  SetBlock* const node = make<SetBlock>(NodeKind::SetBlock);
  node->line = line;
  node->target = to;
  node->filter = filter_chain(nullptr, false);
  body({"endset"}, node->body);
  return node;
}

void Parser::signature(Macro& macro) {
  std::vector<Symbol*> parameters;
  std::vector<Node*> defaults;
  expect_op("(");
  for (bool first = true; !at_op(")"); first = false) {
    if (!first) expect_op(",");
    parameters.push_back(name("name"));
    if (std::count(parameters.begin(), parameters.end(), parameters.back()) > 1)
      fail("duplicate argument '" + std::string(parameters.back()->text) + "'");
    if (skip_op("="))
      defaults.push_back(expression());
    else if (!defaults.empty())
      fail("non-default argument follows default argument");
  }
  expect_op(")");
  macro.parameters = slice(parameters);
  macro.defaults = slice(defaults);
}

Node* Parser::macro_statement() {
  Macro* const node = make<Macro>(NodeKind::Macro);
  at_++;
  node->name = name("name");
  signature(*node);
  function_body({"endmacro"}, node->body);
  return node;
}

Node* Parser::call_statement() {
  CallBlock* const node = make<CallBlock>(NodeKind::CallBlock);
  at_++;
  node->caller = make<Macro>(NodeKind::Macro);
  node->caller->name = workspace_.symbols.intern("caller");
  if (at_op("(")) signature(*node->caller);
  Node* const call = expression();
  if (call->kind != NodeKind::Call && call->kind != NodeKind::Broken) fail("expected call");
  function_body({"endcall"}, node->caller->body);
  if (call->kind == NodeKind::Broken) {
    call->kind = NodeKind::Fail;
    return call;
  }
  node->call = static_cast<Call*>(call);
  return node;
}

Node* Parser::filter_statement() {
  FilterBlock* const node = make<FilterBlock>(NodeKind::FilterBlock);
  at_++;
  node->filter = filter_chain(nullptr, true);
  body({"endfilter"}, node->body);
  return node;
}

Node* Parser::with_statement() {
  With* const node = make<With>(NodeKind::With);
  std::vector<Target*> targets;
  std::vector<Node*> values;
  at_++;
  while (current().type != Token::Type::BlockEnd) {
    if (!targets.empty()) expect_op(",");
    targets.push_back(one_target(false));
    expect_op("=");
    values.push_back(expression());
  }
  node->targets = slice(targets);
  node->values = slice(values);
  body({"endwith"}, node->body);
  return node;
}

Node* Parser::print_statement() {
  Scope* const node = make<Scope>(NodeKind::Scope);
  std::vector<Node*> outputs;
  at_++;
  while (current().type != Token::Type::BlockEnd) {
    if (!outputs.empty()) expect_op(",");
    Output* const output = make<Output>(NodeKind::Output);
    output->value = expression();
    outputs.push_back(output);
  }
  node->body = slice(outputs);
  return node;
}

// A tag of Jinja's that chat templates cannot use, since there is nothing to load from: it fails when it is reached.
Node* Parser::unsupported(std::string_view tag) {
  Node* const node = broken("the tag '" + std::string(tag) + "' is not supported");
  node->kind = NodeKind::Fail;
  while (current().type != Token::Type::BlockEnd) {
    if (current().type == Token::Type::End) fail("Unexpected end of template.");
    at_++;
  }
  if (tag != "block" && tag != "autoescape") return node;
  Nodes ignored;
  body({tag == "block" ? "endblock" : "endautoescape"}, ignored);
  if (tag == "block" && current().type == Token::Type::Name) at_++;
  return node;
}

}  // namespace tokenweir::templates
