#include "builtins/text_methods.h"

#include "builtins/format.h"
#include "evaluate/evaluator.h"
#include "text/characters.h"
#include "values/text_edit.h"

namespace tokenweir::templates {
namespace {

// Markup stays markup, and what is put into it is escaped.
Value like(const Value& self, Text* text) { return Value::of_text(text, self.detail); }
Text* put_in(Evaluator& evaluator, const Value& self, const Value& value, std::string_view what) {
  Text* const text = text_argument(value, what);
  return self.detail && !value.detail ? escape(evaluator.workspace, text) : text;
}

template <Case to>
Value cased_text(Evaluator& evaluator, const Value& self, const Bound&) {
  return like(self, change_case(evaluator.workspace, self.text, to));
}

template <Side side>
Value stripped(Evaluator& evaluator, const Value& self, const Bound& bound) {
  Text* const set = bound[0].is_missing() || bound[0].is_none() ? nullptr : text_argument(bound[0], "strip arg");
  return like(self, strip(evaluator.workspace, self.text, side, set));
}

template <bool right>
Value divided(Evaluator& evaluator, const Value& self, const Bound& bound) {
  Text* const separator = bound[0].is_missing() || bound[0].is_none() ? nullptr : text_argument(bound[0], "separator");
  const int64_t most = integer_or(bound[1], -1, "maxsplit");
  return Value::of_list((right ? split_right : split)(evaluator.workspace, self.text, separator, most, self.detail));
}

Value lines(Evaluator& evaluator, const Value& self, const Bound& bound) {
  return Value::of_list(split_lines(evaluator.workspace, self.text, truth_or(bound[0], false), self.detail));
}

template <bool last>
Value parted(Evaluator& evaluator, const Value& self, const Bound& bound) {
  return Value::of_tuple(
      partition(evaluator.workspace, self.text, text_argument(bound[0], "separator"), last, self.detail));
}

Value replaced_text(Evaluator& evaluator, const Value& self, const Bound& bound) {
  return like(self,
              replace(evaluator.workspace, self.text, text_argument(bound[0], "replace() argument 1"),
                      put_in(evaluator, self, bound[1], "replace() argument 2"), integer_or(bound[2], -1, "count")));
}

// The bytes between two optional positions in characters.
std::pair<size_t, size_t> bounds(Evaluator& evaluator, const Value& self, const Value& start, const Value& stop) {
  Workspace& workspace = evaluator.workspace;
  const auto byte = [&](const Value& value, size_t otherwise) -> size_t {
    if (value.is_missing() || value.is_none()) return otherwise;
    int64_t at = integer_argument(value, "slice index");
    if (at < 0) at = std::max<int64_t>(0, at + static_cast<int64_t>(workspace.length(self.text)));
    if (at > static_cast<int64_t>(workspace.length(self.text))) return self.text->size + 1;
    return workspace.byte_of(self.text, static_cast<size_t>(at));
  };
  return {byte(start, 0), std::min<size_t>(byte(stop, self.text->size), self.text->size)};
}

template <bool at_end>
Value starts_or_ends(Evaluator& evaluator, const Value& self, const Bound& bound) {
  Workspace& workspace = evaluator.workspace;
  const auto [begin, end] = bounds(evaluator, self, bound[1], bound[2]);
  const std::string_view flat = workspace.flat(self.text);
  const auto holds = [&, begin = begin, end = end](const Value& value) {
    const char* const name = at_end ? "endswith" : "startswith";
    if (!value.is_text()) type_error(name, " first arg must be str or a tuple of str, not ", type_name(value));
    const std::string_view part = workspace.flat(value.text);
    workspace.spend(1 + part.size() / 32);
    if (begin > end || part.size() > end - begin) return false;
    return flat.substr(at_end ? end - part.size() : begin, part.size()) == part;
  };
  if (bound[0].kind != Kind::Tuple) return Value::boolean(holds(bound[0]));
  for (uint32_t i = 0; i < bound[0].list->size; i++)
    if (holds(bound[0].list->items[i])) return Value::boolean(true);
  return Value::boolean(false);
}

template <bool last, bool must>
Value found(Evaluator& evaluator, const Value& self, const Bound& bound) {
  Workspace& workspace = evaluator.workspace;
  const auto [begin, end] = bounds(evaluator, self, bound[1], bound[2]);
  const std::string_view flat = workspace.flat(self.text);
  const size_t at =
      (last ? find_last : find)(workspace, flat, workspace.flat(text_argument(bound[0], "must be str")), begin, end);
  if (at == kNowhere) {
    if (must) value_error("substring not found");
    return Value::of_int(-1);
  }
  workspace.spend_bytes(at);
  return Value::of_int(static_cast<int64_t>(workspace.ascii(self.text) ? at : count_characters(flat.substr(0, at))));
}

Value counted(Evaluator& evaluator, const Value& self, const Bound& bound) {
  const auto [begin, end] = bounds(evaluator, self, bound[1], bound[2]);
  Text* const what = text_argument(bound[0], "must be str");
  if (begin > end) return Value::of_int(0);
  return Value::of_int(count(evaluator.workspace, evaluator.workspace.slice(self.text, begin, end), what));
}

Value joined(Evaluator& evaluator, const Value& self, const Bound& bound) {
  Workspace& workspace = evaluator.workspace;
  const List& items = *evaluator.to_list(bound[0]);
  Rope rope(workspace);
  for (uint32_t i = 0; i < items.size; i++) {
    workspace.spend(1);
    if (!items.items[i].is_text() && !self.detail)
      type_error("sequence item ", i, ": expected str instance, ", type_name(items.items[i]), " found");
    if (i) rope.add(self.text);
    const Value item = items.items[i].is_text() ? items.items[i] : Value::of_text(to_text(workspace, items.items[i]));
    rope.add(put_in(evaluator, self, item, "item"));
  }
  return like(self, rope.finish());
}

template <Side text_side>
Value padded(Evaluator& evaluator, const Value& self, const Bound& bound) {
  Text* const fill =
      bound[1].is_missing() ? evaluator.workspace.engine(" ") : put_in(evaluator, self, bound[1], "fill");
  return like(self, pad(evaluator.workspace, self.text, integer_argument(bound[0], "width"), fill, text_side));
}

Value zero_filled(Evaluator& evaluator, const Value& self, const Bound& bound) {
  return like(self, zero_fill(evaluator.workspace, self.text, integer_argument(bound[0], "width")));
}

Value tabs_expanded(Evaluator& evaluator, const Value& self, const Bound& bound) {
  return like(self, expand_tabs(evaluator.workspace, self.text, integer_or(bound[0], 8, "tabsize")));
}

Value without_prefix(Evaluator& evaluator, const Value& self, const Bound& bound) {
  Workspace& workspace = evaluator.workspace;
  const std::string_view prefix = workspace.flat(text_argument(bound[0], "prefix"));
  const bool begins = workspace.flat(self.text).starts_with(prefix);
  return like(self, begins ? workspace.slice(self.text, prefix.size(), self.text->size) : self.text);
}

Value without_suffix(Evaluator& evaluator, const Value& self, const Bound& bound) {
  Workspace& workspace = evaluator.workspace;
  const std::string_view suffix = workspace.flat(text_argument(bound[0], "suffix"));
  const bool ends = workspace.flat(self.text).ends_with(suffix);
  return like(self, ends ? workspace.slice(self.text, 0, self.text->size - suffix.size()) : self.text);
}

Value formatted_text(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  return format_braces(evaluator, self, arguments);
}

// Whether the text is not empty and all its characters are such.
template <bool (*holds)(uint32_t)>
Value all(Evaluator& evaluator, const Value& self, const Bound&) {
  const std::string_view text = evaluator.workspace.flat(self.text);
  evaluator.workspace.spend(text.size() / 8);
  for (size_t at = 0; at < text.size();)
    if (!holds(next_character(text, at))) return Value::boolean(false);
  return Value::boolean(!text.empty());
}

bool is_alphanumeric(uint32_t c) { return is_alphabetic(c) || is_decimal(c) || is_digit(c) || is_numeric(c); }

Value is_ascii_text(Evaluator& evaluator, const Value& self, const Bound&) {
  return Value::boolean(evaluator.workspace.ascii(self.text));
}

Value is_printable_text(Evaluator& evaluator, const Value& self, const Bound& bound) {
  return Value::boolean(!self.text->size || truth(all<is_printable>(evaluator, self, bound)));
}

Value is_identifier(Evaluator& evaluator, const Value& self, const Bound&) {
  const std::string_view text = evaluator.workspace.flat(self.text);
  for (size_t at = 0; at < text.size();) {
    const bool first = at == 0;
    const uint32_t c = next_character(text, at);
    if (!(first ? starts_identifier(c) : continues_identifier(c))) return Value::boolean(false);
  }
  return Value::boolean(!text.empty());
}

template <bool upper>
Value all_cased(Evaluator& evaluator, const Value& self, const Bound&) {
  return Value::boolean(has_case(evaluator.workspace, self.text, upper));
}

Value is_title_text(Evaluator& evaluator, const Value& self, const Bound&) {
  const std::string_view text = evaluator.workspace.flat(self.text);
  evaluator.workspace.spend(text.size() / 8);
  bool found = false, after_letter = false;
  for (size_t at = 0; at < text.size();) {
    const uint32_t c = next_character(text, at);
    if ((is_upper(c) || is_title(c)) ? after_letter : is_lower(c) && !after_letter) return Value::boolean(false);
    after_letter = is_cased(c);
    found |= after_letter;
  }
  return Value::boolean(found);
}

const Signature kSearch{{kPlaceOnly, kPlaceOnly, kPlaceOnly}, 1}, kChars{{kPlaceOnly}};
const Signature kSplit{{"sep", "maxsplit"}}, kPad{{kPlaceOnly, kPlaceOnly}, 1};

}  // namespace

const std::vector<Method>& text_methods() {
  static const std::vector<Method> table{
      {"capitalize", {}, cased_text<Case::Capitalize>},
      {"casefold", {}, cased_text<Case::Fold>},
      {"center", kPad, padded<Side::Both>},
      {"count", kSearch, counted},
      {"encode"},
      {"endswith", kSearch, starts_or_ends<true>},
      {"expandtabs", {{"tabsize"}}, tabs_expanded},
      {"find", kSearch, found<false, false>},
      {"format", {}, nullptr, formatted_text},
      {"format_map"},
      {"index", kSearch, found<false, true>},
      {"isalnum", {}, all<is_alphanumeric>},
      {"isalpha", {}, all<is_alphabetic>},
      {"isascii", {}, is_ascii_text},
      {"isdecimal", {}, all<is_decimal>},
      {"isdigit", {}, all<is_digit>},
      {"isidentifier", {}, is_identifier},
      {"islower", {}, all_cased<false>},
      {"isnumeric", {}, all<is_numeric>},
      {"isprintable", {}, is_printable_text},
      {"isspace", {}, all<is_space>},
      {"istitle", {}, is_title_text},
      {"isupper", {}, all_cased<true>},
      {"join", kOne, joined},
      {"ljust", kPad, padded<Side::Left>},
      {"lower", {}, cased_text<Case::Lower>},
      {"lstrip", kChars, stripped<Side::Left>},
      {"maketrans"},
      {"partition", kOne, parted<false>},
      {"removeprefix", kOne, without_prefix},
      {"removesuffix", kOne, without_suffix},
      {"replace", {{kPlaceOnly, kPlaceOnly, "count"}, 2}, replaced_text},
      {"rfind", kSearch, found<true, false>},
      {"rindex", kSearch, found<true, true>},
      {"rjust", kPad, padded<Side::Right>},
      {"rpartition", kOne, parted<true>},
      {"rsplit", kSplit, divided<true>},
      {"rstrip", kChars, stripped<Side::Right>},
      {"split", kSplit, divided<false>},
      {"splitlines", {{"keepends"}}, lines},
      {"startswith", kSearch, starts_or_ends<false>},
      {"strip", kChars, stripped<Side::Both>},
      {"swapcase", {}, cased_text<Case::Swap>},
      {"title", {}, cased_text<Case::Title>},
      {"translate"},
      {"upper", {}, cased_text<Case::Upper>},
      {"zfill", kOne, zero_filled},
  };
  return table;
}

}  // namespace tokenweir::templates
