// A parsed template. It never changes, so threads may share it.
#pragma once

#include <set>
#include <string_view>

#include "language/tree.h"

namespace tokenweir::templates {

class Template {
 public:
  // Raises Failure with the line.
  explicit Template(std::string_view source);

  Template(const Template&) = delete;
  Template& operator=(const Template&) = delete;

  const SymbolTable& symbols() const { return workspace_.symbols; }
  Nodes statements() const { return statements_; }
  uint16_t slots() const { return slots_; }
  // Whether it may ask for the time.
  bool reads_clock() const { return workspace_.symbols.find("strftime_now") != nullptr; }
  // Names that are read from the input.
  const std::set<std::string_view>& variables() const { return variables_; }

 private:
  static constexpr size_t kMostMemory = 64 << 20, kMostSource = 1 << 20;

  Arena names_;
  Workspace workspace_;
  Nodes statements_;
  uint16_t slots_ = 0;
  std::set<std::string_view> variables_;
};

}  // namespace tokenweir::templates
