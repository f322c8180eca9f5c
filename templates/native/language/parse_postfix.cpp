// Postfix parts of an expression: attributes, subscripts, calls, filters and tests.
#include "language/parser.h"
#include "values/bigint.h"
#include "values/filter.h"

namespace tokenweir::templates {

Node* Parser::postfix(Node* node) {
  for (size_t n = 0;; n++) {
    if (n == kMostChain) fail("too many attributes in a row");
    if (at_op(".") || at_op("["))
      node = subscript(node);
    else if (at_op("("))
      node = call(node);
    else
      return node;
  }
}

Node* Parser::filters_and_tests(Node* node) {
  for (size_t n = 0;; n++) {
    if (n == kMostChain) fail("too many filters in a row");
    if (at_op("|"))
      node = filter_chain(node, false);
    else if (at_name("is"))
      node = test(node);
    else if (at_op("("))
      node = call(node);
    else
      return node;
  }
}

Node* Parser::subscript(Node* object) {
  if (skip_op(".")) {
    if (current().type == Token::Type::Integer) {
      Item* const node = make<Item>(NodeKind::Item);
      Constant* const key = make<Constant>(NodeKind::Constant);
      key->value = integer_of(workspace_, current().text);
      at_++;
      node->object = object;
      node->key = key;
      return node;
    }
    Attribute* const node = make<Attribute>(NodeKind::Attribute);
    node->object = object;
    node->symbol = name("name or number");
    return node;
  }
  expect_op("[");
  std::vector<Node*> indices;
  while (!at_op("]")) {
    if (!indices.empty()) expect_op(",");
    indices.push_back(slice_or_index());
  }
  expect_op("]");
  if (indices.size() != 1) {
    for (Node* const index : indices)
      if (index->kind == NodeKind::Part) return broken("slices of several dimensions are not supported");
    Sequence* const key = make<Sequence>(NodeKind::Tuple);
    key->items = slice(indices);
    indices = {key};
  }
  if (indices[0]->kind == NodeKind::Part) {
    static_cast<Part*>(indices[0])->object = object;
    return indices[0];
  }
  Item* const node = make<Item>(NodeKind::Item);
  node->line = object->line;
  node->object = object;
  node->key = indices[0];
  if (node->key->kind == NodeKind::Constant)
    if (const Value& key = static_cast<Constant*>(node->key)->value; key.is_text())
      node->symbol = workspace_.symbols.intern(workspace_.flat(key.text));
  return node;
}

Node* Parser::slice_or_index() {
  Node* start = nullptr;
  if (!at_op(":")) {
    start = expression();
    if (!at_op(":")) return start;
  }
  Part* const node = make<Part>(NodeKind::Part);
  at_++;
  node->start = start;
  const auto bound = [&] { return at_op(":") || at_op("]") || at_op(",") ? nullptr : expression(); };
  node->stop = bound();
  if (skip_op(":")) node->step = bound();
  return node;
}

// False if there are `*` or `**` arguments, which are read and dropped.
bool Parser::arguments(ArgumentNodes& arguments) {
  std::vector<Node*> positional;
  std::vector<Keyword> named;
  bool plain = true;
  expect_op("(");
  for (bool first = true; !at_op(")"); first = false) {
    if (!first) expect_op(",");
    if (at_op(")")) break;
    if (skip_op("*") || skip_op("**")) {
      expression();
      plain = false;
    } else if (current().type == Token::Type::Name && ahead().is("=")) {
      Symbol* const keyword = name("name");
      at_++;
      named.push_back({keyword, expression()});
    } else {
      if (!named.empty()) fail("invalid syntax for function call expression");
      positional.push_back(expression());
    }
  }
  expect_op(")");
  arguments = {slice(positional), slice(named)};
  return plain;
}

Node* Parser::call(Node* callee) {
  Call* const node = make<Call>(NodeKind::Call);
  node->line = callee->line;
  node->callee = callee;
  if (!arguments(node->arguments)) return broken("calls with * or ** arguments are not supported");
  return node;
}

Node* Parser::filter_chain(Node* subject, bool starts_inline) {
  for (size_t n = 0; starts_inline || at_op("|"); n++) {
    if (n == kMostChain) fail("too many filters in a row");
    if (!starts_inline) at_++;
    starts_inline = false;
    subject = filter(subject);
  }
  return subject;
}

Node* Parser::filter(Node* subject) {
  FilterNode* const node = make<FilterNode>(NodeKind::Filter);
  std::string called(name("name")->text);
  while (skip_op(".")) called.append(".").append(name("name")->text);
  const bool plain = !at_op("(") || arguments(node->arguments);
  node->subject = subject;
  node->filter = find_filter(called);
  if (!node->filter) return broken(missing_filter(called), !is_known_to_jinja(called));
  if (!plain) return broken("calls with * or ** arguments are not supported");
  return node;
}

Node* Parser::test(Node* subject) {
  TestNode* const node = make<TestNode>(NodeKind::Test);
  expect_name("is");
  node->negated = skip_name("not");
  std::string called(name("name")->text);
  while (skip_op(".")) called.append(".").append(name("name")->text);
  bool plain = true;
  const Token::Type type = current().type;
  if (at_op("(")) {
    plain = arguments(node->arguments);
  } else if ((type == Token::Type::Name || type == Token::Type::String || type == Token::Type::Integer ||
              type == Token::Type::Float || at_op("[") || at_op("{")) &&
             !at_name("else") && !at_name("or") && !at_name("and")) {
    if (at_name("is")) fail("You cannot chain multiple tests with is");
    node->arguments.positional = slice<Node*>({postfix(primary())});
  }
  node->subject = subject;
  node->test = find_test(called);
  if (!node->test) return broken("No test named '" + called + "' found.", true);
  if (!plain) return broken("calls with * or ** arguments are not supported");
  return node;
}

}  // namespace tokenweir::templates
