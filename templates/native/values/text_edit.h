// Text edits with the semantics of Python's `str`, origins kept. Positions and lengths in arguments are bytes where not said otherwise.
#pragma once

#include "values/value.h"

namespace tokenweir::templates {

enum class Side : uint8_t { Left = 1, Right = 2, Both = 3 };
enum class Case : uint8_t { Upper, Lower, Title, Capitalize, Swap, Fold };

inline constexpr size_t kNowhere = static_cast<size_t>(-1);

// The first or the last place of `what` in [begin, end) of a text.
size_t find(Workspace& workspace, std::string_view text, std::string_view what, size_t begin, size_t end);
size_t find_last(Workspace& workspace, std::string_view text, std::string_view what, size_t begin, size_t end);
bool contains(Workspace& workspace, Text* text, Text* what);
int64_t count(Workspace& workspace, Text* text, Text* what);

// `characters` null: white space.
Text* strip(Workspace& workspace, Text* text, Side side, Text* characters);
Text* change_case(Workspace& workspace, Text* text, Case to);
// The filter `title`, which begins words where the method does not.
Text* title_words(Workspace& workspace, Text* text);
// `most` below 0: all.
Text* replace(Workspace& workspace, Text* text, Text* what, Text* with, int64_t most);
// `separator` null: white space.
List* split(Workspace& workspace, Text* text, Text* separator, int64_t most, bool markup);
List* split_right(Workspace& workspace, Text* text, Text* separator, int64_t most, bool markup);
List* split_lines(Workspace& workspace, Text* text, bool keep_ends, bool markup);
List* partition(Workspace& workspace, Text* text, Text* separator, bool last, bool markup);
// Each character as a text.
List* characters(Workspace& workspace, Text* text);
Text* reversed(Workspace& workspace, Text* text);
Text* pad_by(Workspace& workspace, Text* text, int64_t left, int64_t right, Text* fill);
// `width` in characters; `fill` is one character.
Text* pad(Workspace& workspace, Text* text, int64_t width, Text* fill, Side text_side);
Text* repeat(Workspace& workspace, Text* text, int64_t times);
Text* indent(Workspace& workspace, Text* text, Text* indention, bool first, bool blank);
Text* expand_tabs(Workspace& workspace, Text* text, int64_t size);
Text* zero_fill(Workspace& workspace, Text* text, int64_t width);
// HTML escapes, as markupsafe writes them.
Text* escape(Workspace& workspace, Text* text);
// Whether some letter has this case, and none another.
bool has_case(Workspace& workspace, Text* text, bool upper);
int64_t count_words(Workspace& workspace, Text* text);
Text* spaces(Workspace& workspace, int64_t count);

}  // namespace tokenweir::templates
