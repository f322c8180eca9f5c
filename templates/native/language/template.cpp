#include "language/template.h"

#include "base/utf8_replace.h"
#include "language/parser.h"
#include "language/scopes.h"
#include "text/characters.h"
#include "values/filter.h"
#include "values/method.h"

namespace tokenweir::templates {

Template::Template(std::string_view source)
    : names_(kMostMemory), workspace_(names_, nullptr, kMostMemory, kMostMemory) {
  if (source.size() > kMostSource)
    throw Failure(joined("the template is longer than the limit of ", kMostSource, " bytes"));
  Parser parser(workspace_, tokenize(source));
  statements_ = parser.parse();
  Resolved resolved = resolve_scopes(workspace_, statements_);
  slots_ = resolved.slots;
  variables_ = std::move(resolved.variables);
  std::erase_if(variables_, [](std::string_view name) { return find_function(name) != nullptr; });
  // Renders read symbols and never write them.
  workspace_.symbols.each([&](Symbol& symbol) {
    describe(symbol);
    symbol.shown = workspace_.leaf(symbol.text, kFromTemplate, 0, is_ascii(symbol.text));
  });
}

}  // namespace tokenweir::templates
