// The names of the fields of messages, as symbols.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "values/value.h"

namespace tokenweir::templates {

struct MessageFields {
  explicit MessageFields(SymbolTable& symbols)
      : role(symbols.intern("role")),
        content(symbols.intern("content")),
        tool_calls(symbols.intern("tool_calls")),
        function(symbols.intern("function")),
        name(symbols.intern("name")),
        arguments(symbols.intern("arguments")),
        id(symbols.intern("id")),
        tool_call_id(symbols.intern("tool_call_id")),
        text(symbols.intern("text")),
        refusal(symbols.intern("refusal")),
        type(symbols.intern("type")),
        reasoning{symbols.intern("reasoning_content"), symbols.intern("thinking"), symbols.intern("reasoning")} {}

  // The function of a call, which may be the call itself.
  Dict* function_of(const Value& call) const {
    const Value* const found = call.dict->find(function);
    if (!found) return call.dict;
    return found->kind == Kind::Dict ? found->dict : nullptr;
  }
  // The calls of a message; an empty list if it has no calls.
  const List& calls_of(const Dict& message) const {
    static constexpr List kNone{};
    const Value* const calls = message.find(tool_calls);
    return calls ? *calls->list : kNone;
  }

  Symbol *const role, *const content, *const tool_calls, *const function, *const name, *const arguments;
  Symbol *const id, *const tool_call_id, *const text, *const refusal, *const type;
  Symbol* const reasoning[3];  // of which the first that is set counts
};

inline bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

inline bool is_list(const Value& value) { return value.kind == Kind::List || value.kind == Kind::Tuple; }

// Sets a field; its key counts as the engine's.
inline void set_field(Workspace& workspace, Dict& dict, Symbol* name, const Value& value) {
  dict.set(workspace, name, Value::of_text(workspace.engine(name->text)), value);
}

}  // namespace tokenweir::templates
