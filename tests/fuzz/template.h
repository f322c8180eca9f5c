// A render of the native template engine, and what must be true of any.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>

#include "evaluate/rendering.h"
#include "fuzz.h"
#include "values/json.h"

namespace tokenweir::templates {

struct Rendered {
  std::string text, error;
  std::vector<Span> spans;
  uint64_t steps = 0;
};

// The text of each origin in a text.
inline void note_leaves(const Text& text, std::map<uint32_t, std::string>& texts) {
  for (uint32_t i = 0; i < text.children; i++) note_leaves(*text.child[i], texts);
  if (text.is_leaf() && !text.changed) texts.try_emplace(text.origin, std::string(text.bytes, text.size));
}

// The text of each origin below a value. The first one that is noted counts: a later one may be a part of it.
inline void note_texts(const Value& value, std::map<uint32_t, std::string>& texts) {
  const auto note = [&](const Value& text) {
    if (text.is_text()) note_leaves(*text.text, texts);
  };
  note(value);
  if (value.is_sequence())
    for (uint32_t i = 0; i < value.list->size; i++) note_texts(value.list->items[i], texts);
  if (value.kind == Kind::Dict)
    for (uint32_t i = 0; i < value.dict->size; i++) {
      note(value.dict->entries[i].key);
      note_texts(value.dict->entries[i].value, texts);
    }
}

// Checks the spans of an output; `texts` has the input's text of each origin.
inline void check_origins(const Rendering& rendering, const std::string& text,
                          const std::map<uint32_t, std::string>& texts) {
  size_t at = 0;
  for (const Span& span : rendering.spans()) {
    promised(span.size > 0 && at + span.size <= text.size(), "spans are in the text");
    const std::string_view part = std::string_view(text).substr(at, span.size);
    promised(is_utf8(part), "a span cuts no character");
    promised(span.origin < rendering.origins().size(), "an origin exists");
    promised(!rendering.origins().path(span.origin).empty(), "an origin has a name");
    if (span.origin >= Origins::kFirst && !span.changed) {
      const auto found = texts.find(span.origin);
      promised(found != texts.end(), "an unchanged span is of a text of the input");
      promised(found->second.compare(span.offset, span.size, part) == 0, "it is the slice that it says");
    }
    at += span.size;
  }
  promised(at == text.size(), "spans are the whole text");
  for (const auto& [begin, end] : rendering.generation()) promised(begin <= end && end <= at, "a block is in the text");
}

// Renders over the variables of a JSON text, and checks the origins.
inline Rendered render(const std::shared_ptr<const Template>& source, const std::string& json) {
  Rendered out;
  try {
    Rendering rendering(source);
    const Value body = read_variables(rendering.workspace(), rendering.origins(), json, {});
    if (body.kind != Kind::Dict) return out;
    std::map<uint32_t, std::string> texts;
    note_texts(body, texts);
    for (uint32_t i = 0; i < body.dict->size; i++) {
      const Entry& entry = body.dict->entries[i];
      rendering.inputs().set(rendering.workspace(), entry.symbol, entry.key, entry.value);
    }
    rendering.run(Clock{2026, 11, 20, 9, 30, 15, 250, 4, 324});
    out.text = rendering.take_text();
    out.spans = rendering.spans();
    out.steps = rendering.steps();
    check_origins(rendering, out.text, texts);
  } catch (const Failure& failure) {
    out.error = failure.what();  // which may be empty: a template can raise any text
  } catch (const BadText& bad) {
    out.error = bad.what();
  }
  return out;
}

// The same a second time.
inline void render_twice(const std::shared_ptr<const Template>& source, const std::string& json) {
  const Rendered one = render(source, json), other = render(source, json);
  promised(one.text == other.text && one.error == other.error, "a render ends the same each time");
  promised(one.steps == other.steps && one.spans.size() == other.spans.size(), "and takes the same steps");
}

inline std::shared_ptr<const Template> parsed(std::string_view source) {
  try {
    return std::make_shared<const Template>(source);
  } catch (const Failure& failure) {
    promised(failure.line > 0 || std::string_view(failure.what()).find("longer than") != std::string_view::npos,
             "a syntax error has its line");
    return nullptr;
  }
}

}  // namespace tokenweir::templates
