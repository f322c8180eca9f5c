#include "values/arguments.h"

#include "values/bigint.h"

namespace tokenweir::templates {

void Arguments::add_named_to(Workspace& workspace, Dict& dict) const {
  for (uint32_t i = 0; i < named_count; i++)
    set_name(workspace, dict, workspace.symbols.intern(names[i]->text), named[i]);
}

Bound bind(std::string_view what, const Signature& signature, const Arguments& arguments) {
  Bound bound;
  if (!arguments.count && !arguments.named_count && !signature.required) return bound;
  const auto call = [&] { return std::string(what) + "()"; };
  const uint32_t most = signature.size();
  if (arguments.count > most)
    type_error(call(), " takes at most ", most, " argument", most == 1 ? "" : "s", " (", arguments.count, " given)");
  for (uint32_t i = 0; i < arguments.count; i++) bound[i] = arguments.positional[i];
  for (uint32_t i = 0; i < arguments.named_count; i++) {
    uint32_t at = 0;
    while (at < most && signature.names[at] != arguments.names[i]->text) at++;
    if (at == most) type_error(call(), " got an unexpected keyword argument '", arguments.names[i]->text, "'");
    if (!bound[at].is_missing()) type_error(call(), " got multiple values for argument '", signature.names[at], "'");
    bound[at] = arguments.named[i];
  }
  for (uint32_t i = 0; i < signature.required; i++)
    if (bound[i].is_missing())
      type_error(call(), " missing a required argument",
                 signature.names[i] == kPlaceOnly ? "" : ": '" + std::string(signature.names[i]) + "'");
  return bound;
}

Text* text_argument(const Value& value, std::string_view what) {
  if (!value.is_text()) type_error(what, " must be str, not ", type_name(value));
  return value.text;
}

int64_t integer_argument(const Value& value, std::string_view what) {
  if (value.is_integer()) return value.integer;
  if (value.kind == Kind::BigInt) throw Failure(joined("OverflowError: ", what, " is too large"));
  type_error(what, ": '", type_name(value), "' object cannot be interpreted as an integer");
}

int64_t integer_or(const Value& value, int64_t otherwise, std::string_view what) {
  return value.is_missing() ? otherwise : integer_argument(value, what);
}

bool truth_or(const Value& value, bool otherwise) { return value.is_missing() ? otherwise : truth(value); }

}  // namespace tokenweir::templates
