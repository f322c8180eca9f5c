// Text cut into several.
#include <algorithm>

#include "text/characters.h"
#include "values/text_edit.h"

namespace tokenweir::templates {

List* split(Workspace& workspace, Text* text, Text* separator, int64_t most, bool markup) {
  const std::string_view flat = workspace.flat(text);
  List* const list = List::make(workspace, 4);
  Slicer slice(workspace, text);
  const auto put = [&](size_t begin, size_t end) { list->add(workspace, Value::of_text(slice(begin, end), markup)); };
  if (separator) {
    const std::string_view mark = workspace.flat(separator);
    if (mark.empty()) value_error("empty separator");
    size_t done = 0;
    for (size_t at; most != 0 && (at = find(workspace, flat, mark, done, flat.size())) != kNowhere; most--) {
      put(done, at);
      done = at + mark.size();
    }
    put(done, flat.size());
    return list;
  }
  workspace.spend(flat.size() / 16);
  for (size_t at = 0; at < flat.size();) {
    size_t start = at;
    if (is_space(next_character(flat, at))) continue;
    if (most == 0) {
      put(start, flat.size());
      break;
    }
    size_t end = at;
    while (end < flat.size()) {
      size_t next = end;
      if (is_space(next_character(flat, next))) break;
      end = next;
    }
    put(start, end);
    at = end;
    most--;
  }
  return list;
}

List* split_right(Workspace& workspace, Text* text, Text* separator, int64_t most, bool markup) {
  const std::string_view flat = workspace.flat(text);
  List* const list = List::make(workspace, 4);
  Slicer slice(workspace, text);
  const auto put = [&](size_t begin, size_t end) { list->add(workspace, Value::of_text(slice(begin, end), markup)); };
  size_t end = flat.size();
  if (separator) {
    const std::string_view mark = workspace.flat(separator);
    if (mark.empty()) value_error("empty separator");
    for (size_t at; most != 0 && (at = find_last(workspace, flat, mark, 0, end)) != kNowhere; most--) {
      put(at + mark.size(), end);
      end = at;
    }
    put(0, end);
    std::reverse(list->begin(), list->end());
    return list;
  }
  workspace.spend(flat.size() / 16);
  const auto character_before = [&](size_t at) {
    size_t start = previous_character(flat, at);
    return next_character(flat, start);
  };
  while (end > 0) {
    if (is_space(character_before(end))) {
      end = previous_character(flat, end);
      continue;
    }
    if (most == 0) {
      put(0, end);
      break;
    }
    size_t start = end;
    while (start > 0 && !is_space(character_before(start))) start = previous_character(flat, start);
    put(start, end);
    end = start;
    most--;
  }
  std::reverse(list->begin(), list->end());
  return list;
}

List* split_lines(Workspace& workspace, Text* text, bool keep_ends, bool markup) {
  const std::string_view flat = workspace.flat(text);
  workspace.spend(flat.size() / 16);
  List* const list = List::make(workspace, 4);
  Slicer slice(workspace, text);
  size_t begin = 0;
  for (size_t at = 0; at < flat.size();) {
    const size_t start = at;
    const uint32_t c = next_character(flat, at);
    if (!ends_line(c)) continue;
    if (c == '\r' && at < flat.size() && flat[at] == '\n') at++;
    list->add(workspace, Value::of_text(slice(begin, keep_ends ? at : start), markup));
    begin = at;
  }
  if (begin < flat.size()) list->add(workspace, Value::of_text(slice(begin, flat.size()), markup));
  return list;
}

List* partition(Workspace& workspace, Text* text, Text* separator, bool last, bool markup) {
  const std::string_view flat = workspace.flat(text), mark = workspace.flat(separator);
  if (mark.empty()) value_error("empty separator");
  const size_t at = (last ? find_last : find)(workspace, flat, mark, 0, flat.size());
  List* const list = List::make(workspace, 3);
  const auto put = [&](Text* part) { list->add(workspace, Value::of_text(part, markup)); };
  if (at == kNowhere) {
    put(last ? workspace.empty() : text);
    put(workspace.empty());
    put(last ? text : workspace.empty());
  } else {
    put(workspace.slice(text, 0, at));
    put(workspace.slice(text, at, at + mark.size()));
    put(workspace.slice(text, at + mark.size(), flat.size()));
  }
  return list;
}

List* characters(Workspace& workspace, Text* text) {
  const std::string_view flat = workspace.flat(text);
  workspace.spend(flat.size());
  List* const list = List::make(workspace, static_cast<uint32_t>(workspace.length(text)));
  Slicer slice(workspace, text);
  for (size_t at = 0; at < flat.size();) {
    const size_t next = at + utf8_length(static_cast<uint8_t>(flat[at]));
    list->add(workspace, Value::of_text(slice(at, next)));
    at = next;
  }
  return list;
}

}  // namespace tokenweir::templates
