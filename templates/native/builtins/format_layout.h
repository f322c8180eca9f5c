// The layout of a value in a formatted text, which both of Python's ways share.
#pragma once

#include <string>
#include <string_view>

#include "values/value.h"

namespace tokenweir::templates {

inline constexpr int64_t kMostWidth = 1'000'000;

// The layout of one value.
struct Layout {
  std::string fill = " ";
  char align = 0;  // <, >, ^, = or 0: by the kind
  char sign = '-';
  bool alternate = false, zeros = false;
  char grouping = 0;
  int64_t width = 0, precision = -1;
  char type = 0;
};

// The width or precision at `at`, which is moved behind it.
int64_t number_at(std::string_view text, size_t& at);
// A text in its width, beside the given side: <, > or ^.
Text* pad_text(Workspace& workspace, Text* text, const Layout& layout, char align);
// The character of a number.
Text* character_of(Workspace& workspace, const Value& value);
// A number by its type.
Text* number_layout(Workspace& workspace, const Value& value, const Layout& layout);

}  // namespace tokenweir::templates
