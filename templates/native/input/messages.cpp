#include "input/messages.h"

#include "evaluate/rendering.h"
#include "input/message_checks.h"
#include "values/bigint.h"
#include "values/json.h"

namespace tokenweir::templates {

Messages::Messages()
    : names_(Rendering::kMostMemory), workspace_(names_, nullptr, Rendering::kMostMemory, Rendering::kMostText) {
  origins_.add_variable(workspace_.symbols.intern("messages"));
}

void Messages::read_json(std::string_view bytes) {
  const Value read = read_list(workspace_, origins_, bytes, root());
  if (read.kind != Kind::List) throw BadInput(not_a_list("messages", type_name(read)));
  for (uint32_t i = 0; i < read.list->size; i++)
    if (const Value& message = read.list->items[i]; message.kind != Kind::Dict)
      throw BadInput(not_a_mapping(origins_.path(root()) + "[" + std::to_string(i) + "]", type_name(message)));
  list_ = read.list;
}

// Calls `visit` for each string that is no key.
template <class Visit>
static void each_text(const Value& value, Visit&& visit) {
  if (value.is_text()) visit(std::string_view(value.text->bytes, value.text->size));
  if (value.is_sequence())
    for (const Value& item : *value.list) each_text(item, visit);
  if (value.kind == Kind::Dict)
    for (const Entry& entry : *value.dict) each_text(entry.value, visit);
}

uint64_t Messages::text_size() const {
  uint64_t size = 0;
  for (const Value& message : *list_) each_text(message, [&](std::string_view text) { size += text.size(); });
  return size;
}

static void add_number(std::string& out, uint64_t number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

static void add_text(std::string& out, char kind, std::string_view text) {
  out += kind;
  add_number(out, text.size());
  out += text;
}

static void add_canonical(std::string& out, const Value& value) {
  switch (value.kind) {
    case Kind::Text: add_text(out, 's', {value.text->bytes, value.text->size}); return;
    case Kind::BigInt: add_text(out, 'n', digits_of(value)); return;
    case Kind::Bool: out += value.integer ? 'y' : 'f'; return;
    case Kind::Int:
    case Kind::Float:  // the two share their bytes
      out += value.kind == Kind::Int ? 'i' : 'd';
      add_number(out, static_cast<uint64_t>(value.integer));
      return;
    case Kind::List:
    case Kind::Tuple:
      out += value.kind == Kind::List ? 'l' : 't';
      add_number(out, value.list->size);
      for (const Value& item : *value.list) add_canonical(out, item);
      return;
    case Kind::Dict:
      out += 'o';
      add_number(out, value.dict->size);
      for (const Entry& entry : *value.dict) {
        add_text(out, 'k', entry.symbol->text);
        add_canonical(out, entry.value);
      }
      return;
    default: out += '0'; return;  // None; input has no other kinds
  }
}

std::string Messages::canonical(uint32_t index) const {
  std::string out;
  add_canonical(out, list_->items[index]);
  return out;
}

namespace {

constexpr size_t kSample = 64;  // bytes at the beginning, in the middle and at the end of a long text

uint64_t mix(uint64_t digest, uint64_t number) {
  digest = (digest ^ number) * 0x9E3779B97F4A7C15;
  return digest ^ digest >> 32;
}

uint64_t mix_text(uint64_t digest, std::string_view text) {
  const auto add = [&](std::string_view part) { digest = mix(digest, std::hash<std::string_view>{}(part)); };
  digest = mix(digest, text.size());
  if (text.size() <= 4 * kSample) {
    add(text);
  } else {
    add(text.substr(0, kSample));
    add(text.substr(text.size() / 2, kSample));
    add(text.substr(text.size() - kSample));
  }
  return digest;
}

}  // namespace

static uint64_t text_digest(const Value& message) {
  uint64_t digest = 0;
  for (const Entry& entry : *message.dict)
    if (entry.value.is_text() || entry.symbol->text == "content")
      each_text(entry.value, [&](std::string_view text) { digest = mix_text(digest, text); });
  return digest;
}

void Messages::add_text_digests(std::vector<uint64_t>& digests) const {
  digests.reserve(size());
  for (size_t i = digests.size(); i < size(); i++) digests.push_back(text_digest(list_->items[i]));
}

std::vector<uint64_t> chain(uint64_t start, const std::vector<uint64_t>& digests) {
  std::vector<uint64_t> chained{start};
  chained.reserve(digests.size() + 1);
  for (const uint64_t digest : digests) chained.push_back(mix(chained.back(), digest));
  return chained;
}

namespace {

// Copies lists and objects, with the symbols of another table.
class Copier {
 public:
  Copier(Workspace& workspace, uint32_t symbols) : workspace_(workspace), symbols_(symbols) {}

  Symbol* symbol(const Symbol* read) {
    Symbol*& known = symbols_[read->number];
    if (!known) known = workspace_.symbols.intern(read->text);
    return known;
  }

  Value value(const Value& read) {
    Value made = read;
    if (read.kind == Kind::Dict) {
      made.dict = Dict::make(workspace_, read.dict->size);
      for (const Entry& entry : *read.dict)
        made.dict->append(workspace_, {symbol(entry.symbol), entry.key, value(entry.value)});
    } else if (read.kind == Kind::List || read.kind == Kind::Tuple) {
      made.list = list(*read.list);
    }
    return made;
  }

  List* list(const List& read) {
    List* const made = List::make(workspace_, read.size);
    for (const Value& item : read) made->add(workspace_, value(item));
    return made;
  }

 private:
  Workspace& workspace_;
  std::vector<Symbol*> symbols_;  // by the number of the one that was read
};

}  // namespace

List* Messages::copy_into(Workspace& workspace, Origins& origins) const {
  Copier copier(workspace, workspace_.symbols.size());
  origins.adopt(origins_, [&](const Symbol* key) { return copier.symbol(key); });
  return copier.list(*list_);
}

}  // namespace tokenweir::templates
