// The tokens of a template's source, by Jinja's rules with trim_blocks and lstrip_blocks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tokenweir::templates {

struct Token {
  enum class Type : uint8_t {
    Data,
    VariableBegin,
    VariableEnd,
    BlockBegin,
    BlockEnd,
    Name,
    String,
    Integer,
    Float,
    Operator,
    End
  };

  Type type;
  uint32_t line;
  std::string text;         // of a string what it means, of a number its digits without underscores
  std::string broken = {};  // of a string, an escape that is not supported: an error where it is reached

  bool is(std::string_view op) const { return type == Type::Operator && text == op; }
  bool names(std::string_view name) const { return type == Type::Name && text == name; }
};

// Raises Failure with the line.
std::vector<Token> tokenize(std::string_view source);

}  // namespace tokenweir::templates
