// Parsing of operators and literals, and functions that all of the parser uses.
#include "language/parser.h"

#include <utility>

#include "text/characters.h"
#include "values/bigint.h"

namespace tokenweir::templates {

Nodes Parser::parse() { return statements({}); }

bool Parser::skip_op(std::string_view op) {
  if (!at_op(op)) return false;
  at_++;
  return true;
}

bool Parser::skip_name(std::string_view name) {
  if (!at_name(name)) return false;
  at_++;
  return true;
}

void Parser::expect_op(std::string_view op) {
  if (!skip_op(op)) fail_unexpected(op);
}

void Parser::expect_name(std::string_view name) {
  if (!skip_name(name)) fail_unexpected(name);
}

Symbol* Parser::name(const char* what) {
  if (current().type != Token::Type::Name) fail_unexpected(what);
  return workspace_.symbols.intern(tokens_[at_++].text);
}

void Parser::fail(const std::string& message) const { throw Failure(message, current().line); }

void Parser::fail_unexpected(std::string_view expected) const {
  if (current().type == Token::Type::End) fail("Unexpected end of template, expected '" + std::string(expected) + "'.");
  fail("expected token '" + std::string(expected) + "', got '" + got() + "'");
}

std::string Parser::got() const {
  const Token& token = current();
  return token.type == Token::Type::VariableEnd ? "end of print statement"
         : token.type == Token::Type::BlockEnd  ? "end of statement block"
                                                : token.text;
}

Text* Parser::constant_text(std::string_view text) {
  Text* const leaf = workspace_.copy(text, kFromTemplate);
  leaf->ascii = is_ascii(text);
  return leaf;
}

Node* Parser::broken(const std::string& message, bool is_unknown) {
  Broken* const node = make<Broken>(NodeKind::Broken);
  node->is_unknown = is_unknown;
  char* const copy = workspace_.arena.array<char>(message.size() + 1);
  message.copy(copy, message.size());
  copy[message.size()] = '\0';
  node->message = copy;
  return node;
}

template <class Operand>
Node* Parser::chain(std::initializer_list<Operator> operators, Operand&& operand) {
  Node* left = operand();
  for (size_t n = 0;; n++) {
    const auto* const found = std::find_if(operators.begin(), operators.end(), [&](const Operator& each) {
      return at_op(each.text) || at_name(each.text);
    });
    if (found == operators.end()) return left;
    if (n == kMostChain) fail("too many operators in a row");
    at_++;
    Binary* const node = make<Binary>(found->kind);
    node->line = left->line;
    node->op = found->op;
    node->left = left;
    node->right = operand();
    left = node;
  }
}

Node* Parser::conditional() {
  Nesting nesting(*this);
  Node* node = either();
  for (size_t n = 0; skip_name("if"); n++) {
    if (n == kMostChain) fail("too many conditions in a row");
    Conditional* const made = make<Conditional>(NodeKind::Conditional);
    made->then = node;
    made->test = either();
    made->otherwise = skip_name("else") ? conditional() : nullptr;
    node = made;
  }
  return node;
}

Node* Parser::either() {
  return chain({{"or", NodeKind::Or}}, [this] { return both(); });
}

Node* Parser::both() {
  return chain({{"and", NodeKind::And}}, [this] { return negation(); });
}

Node* Parser::negation() {
  if (!at_name("not")) return comparison();
  Nesting nesting(*this);
  Unary* const node = make<Unary>(NodeKind::Not);
  at_++;
  node->operand = negation();
  return node;
}

Node* Parser::comparison() {
  static constexpr std::pair<std::string_view, Comparison> kOperators[] = {
      {"==", Comparison::Equal},     {"!=", Comparison::NotEqual}, {"<", Comparison::Less},
      {"<=", Comparison::LessEqual}, {">", Comparison::Greater},   {">=", Comparison::GreaterEqual}};
  Node* const first = sum();
  std::vector<Comparison> operators;
  std::vector<Node*> others;
  const auto add = [&](Comparison comparison, size_t tokens) {
    at_ += tokens;
    operators.push_back(comparison);
    others.push_back(sum());
  };
  for (;;) {
    const size_t before = others.size();
    if (current().type == Token::Type::Operator) {
      for (const auto& [text, comparison] : kOperators) {
        if (!at_op(text)) continue;
        add(comparison, 1);
        break;
      }
    } else if (at_name("in")) {
      add(Comparison::In, 1);
    } else if (at_name("not") && ahead().names("in")) {
      add(Comparison::NotIn, 2);
    }
    if (others.size() == before) break;
  }
  if (others.empty()) return first;
  Compare* const node = make<Compare>(NodeKind::Compare);
  node->line = first->line;
  node->first = first;
  node->operators = slice(operators);
  node->others = slice(others);
  return node;
}

Node* Parser::sum() {
  return chain({{"+", NodeKind::Binary, Arithmetic::Add}, {"-", NodeKind::Binary, Arithmetic::Subtract}},
               [this] { return concatenation(); });
}

Node* Parser::concatenation() {
  Node* const first = product();
  if (!at_op("~")) return first;
  std::vector<Node*> items{first};
  while (skip_op("~")) items.push_back(product());
  Sequence* const node = make<Sequence>(NodeKind::Concat);
  node->line = first->line;
  node->items = slice(items);
  return node;
}

Node* Parser::product() {
  return chain({{"*", NodeKind::Binary, Arithmetic::Multiply},
                {"/", NodeKind::Binary, Arithmetic::Divide},
                {"//", NodeKind::Binary, Arithmetic::FloorDivide},
                {"%", NodeKind::Binary, Arithmetic::Modulo}},
               [this] { return power(); });
}

Node* Parser::power() {
  return chain({{"**", NodeKind::Binary, Arithmetic::Power}}, [this] { return unary(true); });
}

Node* Parser::unary(bool with_filters) {
  Nesting nesting(*this);
  Node* node;
  if (at_op("-") || at_op("+")) {
    Unary* const made = make<Unary>(at_op("-") ? NodeKind::Negative : NodeKind::Positive);
    at_++;
    made->operand = unary(false);
    node = made;
  } else {
    node = primary();
  }
  node = postfix(node);
  return with_filters ? filters_and_tests(node) : node;
}

Node* Parser::primary() {
  const Token& token = current();
  Constant* const constant = make<Constant>(NodeKind::Constant);
  const auto value = [&](const Value& v) {
    constant->value = v;
    constant->value.origin = kFromTemplate;
    at_++;
    return constant;
  };
  switch (token.type) {
    case Token::Type::Name: {
      if (token.text == "true" || token.text == "True") return value(Value::boolean(true));
      if (token.text == "false" || token.text == "False") return value(Value::boolean(false));
      if (token.text == "none" || token.text == "None") return value(Value::none());
      Name* const node = make<Name>(NodeKind::Name);
      node->symbol = name("name");
      return node;
    }
    case Token::Type::String: {
      std::string text, unsupported;
      for (; current().type == Token::Type::String; at_++) {
        text += current().text;
        if (!current().broken.empty()) unsupported = current().broken;
      }
      if (!unsupported.empty()) return broken(unsupported);
      constant->value = Value::of_text(constant_text(text));
      return constant;
    }
    case Token::Type::Integer: {
      const char base = token.text[0];
      if (is_ascii_digit(static_cast<uint8_t>(base))) return value(integer_of(workspace_, token.text));
      return value(integer_of(workspace_, std::string_view(token.text).substr(1),
                              base == 'x'   ? 16
                              : base == 'o' ? 8
                                            : 2));
    }
    case Token::Type::Float: return value(Value::of_float(std::strtod(token.text.c_str(), nullptr)));
    default: break;
  }
  if (skip_op("(")) {
    Node* const node = tuple(true, true);
    expect_op(")");
    return node;
  }
  const bool is_list = at_op("[");
  if (!is_list && !at_op("{")) {
    if (token.type == Token::Type::End) fail("Unexpected end of template.");
    fail("unexpected '" + got() + "'");
  }
  at_++;
  Nesting nesting(*this);
  std::vector<Node*> items;
  const std::string_view close = is_list ? "]" : "}";
  while (!at_op(close)) {
    if (!items.empty()) expect_op(",");
    if (at_op(close)) break;
    items.push_back(expression());
    if (!is_list) {
      expect_op(":");
      items.push_back(expression());
    }
  }
  expect_op(close);
  Sequence* const node = make<Sequence>(is_list ? NodeKind::List : NodeKind::Dict);
  node->items = slice(items);
  return node;
}

bool Parser::ends_tuple() const {
  const Token::Type type = current().type;
  return type == Token::Type::VariableEnd || type == Token::Type::BlockEnd || at_op(")");
}

Node* Parser::tuple(bool conditionals, bool in_parentheses) {
  std::vector<Node*> items;
  bool is_tuple = false;
  for (;;) {
    if (!items.empty()) expect_op(",");
    if (ends_tuple()) break;
    items.push_back(conditionals ? expression() : either());
    if (!at_op(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!items.empty()) return items[0];
    if (!in_parentheses) fail("Expected an expression, got '" + got() + "'");
  }
  Sequence* const node = make<Sequence>(NodeKind::Tuple);
  node->items = slice(items);
  return node;
}

}  // namespace tokenweir::templates
