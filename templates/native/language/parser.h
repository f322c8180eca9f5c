// Tokens to a tree, by Jinja's grammar.
#pragma once

#include <vector>

#include "language/token.h"
#include "language/tree.h"

namespace tokenweir::templates {

class Parser {
 public:
  Parser(Workspace& workspace, std::vector<Token> tokens) : workspace_(workspace), tokens_(std::move(tokens)) {}

  // The statements of the whole template. Raises Failure with the line.
  Nodes parse();

 private:
  using Ends = std::initializer_list<std::string_view>;
  class Nesting;

  static constexpr int kMostNesting = 200;    // of expressions and of statements
  static constexpr size_t kMostChain = 1000;  // of operators of one rank, which nest to the left

  // Tokens
  const Token& current() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  bool at_op(std::string_view op) const { return current().is(op); }
  bool at_name(std::string_view name) const { return current().names(name); }
  bool skip_op(std::string_view op);
  bool skip_name(std::string_view name);
  void expect_op(std::string_view op);
  void expect_name(std::string_view name);
  Symbol* name(const char* what);
  [[noreturn]] void fail(const std::string& message) const;
  [[noreturn]] void fail_unexpected(std::string_view expected) const;
  // The current token as errors name it.
  std::string got() const;

  template <class T>
  T* make(NodeKind kind) {
    T* const node = workspace_.arena.make<T>(T{});
    node->kind = kind;
    node->line = current().line;
    return node;
  }
  template <class T>
  Slice<T> slice(const std::vector<T>& items) {
    return Slice<T>::copy(workspace_.arena, items);
  }
  Text* constant_text(std::string_view text);
  Node* broken(const std::string& message, bool is_unknown = false);

  // An operator with a rank's other ones between operands, from left to right.
  struct Operator {
    std::string_view text;
    NodeKind kind = NodeKind::Binary;
    Arithmetic op = {};
  };
  template <class Operand>
  Node* chain(std::initializer_list<Operator> operators, Operand&& operand);

  // Expressions
  Node* expression() { return conditional(); }
  Node* conditional();
  Node* either();
  Node* both();
  Node* negation();
  Node* comparison();
  Node* sum();
  Node* concatenation();
  Node* product();
  Node* power();
  Node* unary(bool with_filters);
  Node* primary();
  Node* postfix(Node* node);
  Node* filters_and_tests(Node* node);
  Node* filter(Node* subject);
  Node* filter_chain(Node* subject, bool starts_inline);
  Node* test(Node* subject);
  Node* subscript(Node* object);
  Node* call(Node* callee);
  Node* slice_or_index();
  bool arguments(ArgumentNodes& arguments);
  // Expressions with commas between them are a tuple. `conditionals`: `a if b else c` may stand in it.
  Node* tuple(bool conditionals, bool in_parentheses = false);
  bool ends_tuple() const;

  // Statements
  Nodes statements(Ends ends);
  bool at_end(Ends ends) const;
  // `%}`, statements, and the tag that ends them, whose name is returned; its arguments may follow.
  std::string_view body(Ends ends, Nodes& nodes);
  void function_body(Ends ends, Nodes& nodes);
  Node* statement();
  Node* if_statement();
  Node* for_statement();
  Node* set_statement();
  Node* macro_statement();
  Node* call_statement();
  Node* filter_statement();
  Node* with_statement();
  Node* print_statement();
  Node* unsupported(std::string_view tag);
  void signature(Macro& macro);
  Target* target(bool attributes);
  Target* one_target(bool attributes);
  Target* copied(const Target* target);

  Workspace& workspace_;
  const std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  int loops_ = 0;  // around the statement, in the same function
};

// Counts a level of nesting while it lives.
class Parser::Nesting {
 public:
  explicit Nesting(Parser& parser) : parser_(parser) {
    if (++parser.depth_ > kMostNesting)
      parser.fail("the template is nested more than " + std::to_string(kMostNesting) + " deep");
  }
  ~Nesting() { parser_.depth_--; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  Parser& parser_;
};

}  // namespace tokenweir::templates
