#include "values/text_edit.h"

#include <cstring>

#include "base/memory_search.h"
#include "text/characters.h"

namespace tokenweir::templates {

namespace {

// `find` without a search of linear time: each comparison is charged. Needs begin <= end and a `what` that is not empty.
[[maybe_unused]] size_t find_charged(Workspace& workspace, std::string_view text, std::string_view what, size_t begin,
                                     size_t end) {
  for (size_t at = begin; at + what.size() <= end; at++) {
    const void* const first = std::memchr(text.data() + at, what[0], end - what.size() + 1 - at);
    const size_t from = at;
    at = first ? static_cast<size_t>(static_cast<const char*>(first) - text.data()) : end;
    workspace.spend_bytes(at - from);
    if (!first) break;
    workspace.spend(1 + what.size() / 32);
    if (text.substr(at, what.size()) == what) return at;
  }
  return kNowhere;
}

}  // namespace

size_t find(Workspace& workspace, std::string_view text, std::string_view what, size_t begin, size_t end) {
  if (begin > end || what.size() > end - begin) return kNowhere;
  if (what.empty()) return begin;
  if constexpr (!kHasLinearSearch) return find_charged(workspace, text, what, begin, end);
  const void* const found = find_bytes(text.data() + begin, end - begin, what.data(), what.size());
  const size_t at = found ? static_cast<size_t>(static_cast<const char*>(found) - text.data()) : kNowhere;
  workspace.spend_bytes((found ? at : end) - begin);
  return at;
}

size_t find_last(Workspace& workspace, std::string_view text, std::string_view what, size_t begin, size_t end) {
  if (begin > end || what.size() > end - begin) return kNowhere;
  if (what.empty()) return end;
  for (size_t at = end - what.size() + 1; at-- > begin;) {
    if (text[at] != what[0]) {
      if (at % 32 == 0) workspace.spend(1);
      continue;
    }
    workspace.spend(1 + what.size() / 32);
    if (text.substr(at, what.size()) == what) return at;
  }
  return kNowhere;
}

bool contains(Workspace& workspace, Text* text, Text* what) {
  if (what->size > text->size) return false;
  const std::string_view flat = workspace.flat(text);
  return find(workspace, flat, workspace.flat(what), 0, flat.size()) != kNowhere;
}

int64_t count(Workspace& workspace, Text* text, Text* what) {
  if (!what->size) return static_cast<int64_t>(workspace.length(text)) + 1;
  const std::string_view flat = workspace.flat(text), sought = workspace.flat(what);
  int64_t found = 0;
  for (size_t at = 0; (at = find(workspace, flat, sought, at, flat.size())) != kNowhere; at += sought.size()) {
    workspace.spend(1);
    found++;
  }
  return found;
}

Text* strip(Workspace& workspace, Text* text, Side side, Text* characters) {
  const std::string_view flat = workspace.flat(text);
  const std::string_view set = characters ? workspace.flat(characters) : std::string_view{};
  const auto strips = [&](std::string_view one, uint32_t c) {
    if (!characters) return is_space(c);
    workspace.spend(1 + set.size() / 64);
    return set.find(one) != set.npos;  // characters of UTF-8 are found at their boundaries only
  };
  size_t begin = 0, end = flat.size();
  if (static_cast<uint8_t>(side) & static_cast<uint8_t>(Side::Left)) {
    while (begin < end) {
      size_t next = begin;
      const uint32_t c = next_character(flat, next);
      if (!strips(flat.substr(begin, next - begin), c)) break;
      begin = next;
    }
  }
  if (static_cast<uint8_t>(side) & static_cast<uint8_t>(Side::Right)) {
    while (end > begin) {
      const size_t start = previous_character(flat, end);
      size_t next = start;
      const uint32_t c = next_character(flat, next);
      if (!strips(flat.substr(start, end - start), c)) break;
      end = start;
    }
  }
  workspace.spend_bytes(flat.size() - (end - begin));
  return workspace.slice(text, begin, end);
}

// Calls `map(character, flat, at, out)` for each character; a leaf that stays the same is kept.
template <class Map>
static Text* map_characters(Workspace& workspace, Text* text, Map&& map) {
  const std::string_view flat = workspace.flat(text);
  workspace.spend(flat.size() / 4);
  Rope rope(workspace);
  size_t base = 0;
  std::string out;
  workspace.leaves(text, [&](Text* leaf) {
    out.clear();
    for (size_t at = base; at < base + leaf->size;) {
      const size_t start = at;
      const uint32_t c = next_character(flat, at);
      map(c, flat, start, out);
    }
    const bool same = out == std::string_view{leaf->bytes, leaf->size};
    rope.add(same ? leaf : workspace.copy(out, leaf->origin, leaf->offset, true));
    base += leaf->size;
  });
  return rope.finish();
}

Text* change_case(Workspace& workspace, Text* text, Case to) {
  bool after_letter = false;
  return map_characters(workspace, text, [&](uint32_t c, std::string_view flat, size_t at, std::string& out) {
    switch (to) {
      case Case::Upper: return append_upper(c, out);
      case Case::Lower: return append_lower(c, flat, at, out);
      case Case::Fold: return append_folded(c, out);
      case Case::Capitalize: return at == 0 ? append_title(c, out) : append_lower(c, flat, at, out);
      case Case::Swap:
        return is_upper(c)   ? append_lower(c, flat, at, out)
               : is_lower(c) ? append_upper(c, out)
                             : append_character(c, out);
      case Case::Title:
        after_letter ? append_lower(c, flat, at, out) : append_title(c, out);
        after_letter = is_cased(c);
    }
  });
}

Text* title_words(Workspace& workspace, Text* text) {
  // Words begin at the start and behind runs of -, white space, and opening brackets; a run is changed like a word.
  bool in_word = false;
  size_t rest = 0;  // where the part of the word begins that is lowered, as a text of its own
  return map_characters(workspace, text, [&](uint32_t c, std::string_view flat, size_t at, std::string& out) {
    const bool divides = c == '-' || is_space(c) || c == '(' || c == '{' || c == '[' || c == '<';
    if (divides) {
      append_character(c, out);
    } else if (in_word) {
      append_lower(c, flat.substr(rest), at - rest, out);
    } else {
      append_upper(c, out);
      rest = at + utf8_length(static_cast<uint8_t>(flat[at]));
    }
    in_word = !divides;
  });
}

Text* replace(Workspace& workspace, Text* text, Text* what, Text* with, int64_t most) {
  const std::string_view flat = workspace.flat(text), sought = workspace.flat(what);
  Slicer slice(workspace, text);
  Rope rope(workspace);
  size_t done = 0;
  uint64_t made = 0;
  const auto put = [&] {
    workspace.spend(1);
    rope.add(with);
    workspace.check_size(made += with->size);
  };
  if (sought.empty()) {
    for (size_t at = 0; most != 0 && at <= flat.size(); most--) {
      put();
      if (at == flat.size()) return rope.finish();
      const size_t next = at + utf8_length(static_cast<uint8_t>(flat[at]));
      rope.add(slice(at, next));
      done = at = next;
    }
  } else {
    for (size_t at; most != 0 && (at = find(workspace, flat, sought, done, flat.size())) != kNowhere; most--) {
      rope.add(slice(done, at));
      put();
      done = at + sought.size();
    }
    if (!done) return text;
  }
  rope.add(slice(done, flat.size()));
  return rope.finish();
}

Text* reversed(Workspace& workspace, Text* text) {
  const List* const each = characters(workspace, text);
  Rope rope(workspace);
  for (uint32_t i = each->size; i-- > 0;) rope.add(each->items[i].text);
  return rope.finish();
}

Text* repeat(Workspace& workspace, Text* text, int64_t times) {
  if (times <= 0 || !text->size) return workspace.empty();
  if (static_cast<uint64_t>(times) > workspace.max_text / text->size) workspace.too_large();
  workspace.spend(static_cast<uint64_t>(times));
  Rope rope(workspace);
  for (int64_t i = 0; i < times; i++) rope.add(text);
  return rope.finish();
}

Text* spaces(Workspace& workspace, int64_t count) {
  if (count > 0) workspace.check_size(static_cast<uint64_t>(count));
  return count <= 0 ? workspace.empty() : workspace.copy(std::string(static_cast<size_t>(count), ' '));
}

Text* pad_by(Workspace& workspace, Text* text, int64_t left, int64_t right, Text* fill) {
  Rope rope(workspace);
  rope.add(repeat(workspace, fill, left));
  rope.add(text);
  rope.add(repeat(workspace, fill, right));
  return rope.finish();
}

Text* pad(Workspace& workspace, Text* text, int64_t width, Text* fill, Side text_side) {
  if (workspace.length(fill) != 1) type_error("The fill character must be exactly one character long");
  const int64_t missing = width - static_cast<int64_t>(workspace.length(text));
  if (missing <= 0) return text;
  const int64_t left = text_side == Side::Left    ? 0
                       : text_side == Side::Right ? missing
                                                  : missing / 2 + (missing & width & 1);
  return pad_by(workspace, text, left, missing - left, fill);
}

Text* indent(Workspace& workspace, Text* text, Text* indention, bool first, bool blank) {
  // As Jinja does it: with one more line feed at the end, which splitlines takes away again.
  const List* const lines = split_lines(workspace, workspace.concat(text, workspace.engine("\n")), false, false);
  Rope rope(workspace);
  for (uint32_t i = 0; i < lines->size; i++) {
    Text* const line = lines->items[i].text;
    if (i) rope.add("\n");
    if (i == 0 ? first : blank || line->size) rope.add(indention);
    rope.add(line);
  }
  return rope.finish();
}

Text* expand_tabs(Workspace& workspace, Text* text, int64_t size) {
  const std::string_view flat = workspace.flat(text);
  workspace.spend(flat.size() / 8);
  Slicer slice(workspace, text);
  Rope rope(workspace);
  size_t done = 0;
  int64_t column = 0;
  for (size_t at = 0; at < flat.size();) {
    const size_t start = at;
    const uint32_t c = next_character(flat, at);
    if (c == '\t') {
      rope.add(slice(done, start));
      const int64_t fill = size > 0 ? size - column % size : 0;
      rope.add(spaces(workspace, fill));
      column += fill;
      done = at;
    } else {
      column = c == '\n' || c == '\r' ? 0 : column + 1;
    }
  }
  rope.add(slice(done, flat.size()));
  return rope.finish();
}

Text* zero_fill(Workspace& workspace, Text* text, int64_t width) {
  const std::string_view flat = workspace.flat(text);
  const size_t sign = !flat.empty() && (flat[0] == '-' || flat[0] == '+');
  const int64_t missing = width - static_cast<int64_t>(workspace.length(text));
  if (missing <= 0) return text;
  Rope rope(workspace);
  rope.add(workspace.slice(text, 0, sign));
  rope.add(repeat(workspace, workspace.engine("0"), missing));
  rope.add(workspace.slice(text, sign, flat.size()));
  return rope.finish();
}

Text* escape(Workspace& workspace, Text* text) {
  const std::string_view flat = workspace.flat(text);
  if (flat.find_first_of("&<>\"'") == flat.npos) return text;
  return map_characters(workspace, text, [](uint32_t c, std::string_view, size_t, std::string& out) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&#34;"; break;
      case '\'': out += "&#39;"; break;
      default: append_character(c, out);
    }
  });
}

bool has_case(Workspace& workspace, Text* text, bool upper) {
  const std::string_view flat = workspace.flat(text);
  workspace.spend(flat.size() / 8);
  bool found = false;
  for (size_t at = 0; at < flat.size();) {
    const uint32_t c = next_character(flat, at);
    if (is_title(c) || (upper ? is_lower(c) : is_upper(c))) return false;
    found |= upper ? is_upper(c) : is_lower(c);
  }
  return found;
}

int64_t count_words(Workspace& workspace, Text* text) {
  const std::string_view flat = workspace.flat(text);
  workspace.spend(flat.size() / 4);
  int64_t words = 0;
  bool inside = false;
  for (size_t at = 0; at < flat.size();) {
    const bool word = is_word(next_character(flat, at));
    words += word && !inside;
    inside = word;
  }
  return words;
}

}  // namespace tokenweir::templates
