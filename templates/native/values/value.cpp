#include "values/value.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "values/bigint.h"

namespace tokenweir::templates {

List* List::make(Workspace& workspace, uint32_t capacity) {
  List* const list = static_cast<List*>(workspace.arena.take(sizeof(List)));
  list->capacity = capacity ? capacity : 1;
  list->items = workspace.arena.array<Value>(list->capacity);
  list->size = 0;
  return list;
}

List* List::of(Workspace& workspace, const Value* items, uint32_t count) {
  List* const list = make(workspace, count);
  std::copy_n(items, count, list->items);
  list->size = count;
  return list;
}

void List::add(Workspace& workspace, const Value& value) {
  if (size == capacity) {
    workspace.spend(size);
    Value* const larger = workspace.arena.array<Value>(size_t{capacity} * 2);
    std::memcpy(static_cast<void*>(larger), items, size * sizeof(Value));
    items = larger;
    capacity *= 2;
  }
  items[size++] = value;
}

Dict* Dict::make(Workspace& workspace, uint32_t capacity) {
  Dict* const dict = static_cast<Dict*>(workspace.arena.take(sizeof(Dict)));
  dict->capacity = capacity ? capacity : 1;
  dict->entries = workspace.arena.array<Entry>(dict->capacity);
  dict->size = 0;
  dict->index = nullptr;
  dict->index_size = 0;
  dict->has_other_keys = false;
  return dict;
}

Value* Dict::find_indexed(const Symbol* symbol) const {
  if (!symbol) return nullptr;
  for (uint32_t at = symbol->hash & (index_size - 1); index[at]; at = (at + 1) & (index_size - 1))
    if (entries[index[at] - 1].symbol == symbol) return &entries[index[at] - 1].value;
  return nullptr;
}

Value* Dict::find(Workspace& workspace, const Value& key) const {
  if (key.is_text()) {
    const Symbol* const symbol = workspace.symbols.find(workspace.flat(key.text));
    return symbol ? find(symbol) : nullptr;
  }
  check_hashable(workspace, key);
  if (!has_other_keys) return nullptr;
  for (uint32_t i = 0; i < size; i++) {
    workspace.spend(1);
    if (!entries[i].symbol && equal(workspace, entries[i].key, key)) return &entries[i].value;
  }
  return nullptr;
}

void Dict::set(Workspace& workspace, const Value& key, const Value& value) {
  if (key.is_text()) {
    set(workspace, symbol_of(workspace, key.text), key, value);
    return;
  }
  if (Value* const found = find(workspace, key)) {
    *found = value;
    return;
  }
  has_other_keys = true;
  append(workspace, {nullptr, key, value});
}

void Dict::set(Workspace& workspace, Symbol* symbol, const Value& key, const Value& value) {
  if (Value* const found = find(symbol)) {
    *found = value;
    return;
  }
  append(workspace, {symbol, key, value});
}

void Dict::append(Workspace& workspace, const Entry& entry) {
  if (size == capacity) {
    Entry* const larger = workspace.arena.array<Entry>(size_t{capacity} * 2);
    std::memcpy(static_cast<void*>(larger), entries, size * sizeof(Entry));
    entries = larger;
    capacity *= 2;
    index = nullptr;
  }
  entries[size++] = entry;
  if (size <= kSmall) return;
  if (!index) {
    build_index(workspace);
  } else if (entry.symbol) {
    uint32_t at = entry.symbol->hash & (index_size - 1);
    while (index[at]) at = (at + 1) & (index_size - 1);
    index[at] = size;
  }
}

template <class Test>
void Dict::drop_if(Workspace& workspace, Test&& test) {
  const auto kept = static_cast<uint32_t>(std::remove_if(begin(), end(), test) - begin());
  if (kept == size) return;
  size = kept;
  index = nullptr;
  if (size > kSmall) build_index(workspace);
}

void Dict::drop_none(Workspace& workspace) {
  drop_if(workspace, [](const Entry& entry) { return entry.value.is_none(); });
}

void Dict::drop(Workspace& workspace, const Symbol* symbol) {
  drop_if(workspace, [&](const Entry& entry) { return entry.symbol == symbol; });
}

void Dict::build_index(Workspace& workspace) {
  index_size = 32;
  while (index_size < capacity * 2) index_size *= 2;
  index = workspace.arena.array<uint32_t>(index_size);
  std::memset(index, 0, index_size * sizeof(uint32_t));
  for (uint32_t i = 0; i < size; i++) {
    if (!entries[i].symbol) continue;
    uint32_t at = entries[i].symbol->hash & (index_size - 1);
    while (index[at]) at = (at + 1) & (index_size - 1);
    index[at] = i + 1;
  }
}

Symbol* symbol_of(Workspace& workspace, Text* text) { return workspace.symbols.intern(workspace.flat(text)); }

Text* shown(Workspace& workspace, Symbol* symbol) {
  if (symbol->shown) return symbol->shown;
  return workspace.leaf(symbol->text, kFromTemplate);
}

static const char* kind_name(Kind kind) {
  static constexpr const char* kNames[] = {"Undefined",
                                           "Undefined",
                                           "NoneType",
                                           "bool",
                                           "int",
                                           "int",
                                           "float",
                                           "str",
                                           "list",
                                           "tuple",
                                           "range",
                                           "dict",
                                           "dict_items",
                                           "Namespace",
                                           "generator",
                                           "Macro",
                                           "builtin_function_or_method",
                                           "LoopContext",
                                           "function",
                                           "Cycler",
                                           "Joiner"};
  static_assert(std::size(kNames) == static_cast<size_t>(Kind::Joiner) + 1);
  return kNames[static_cast<size_t>(kind)];
}

const char* type_name(const Value& value) {
  if (value.is_markup()) return "Markup";
  if (value.kind == Kind::View && value.detail != static_cast<uint8_t>(ViewKind::Items))
    return value.detail == static_cast<uint8_t>(ViewKind::Keys) ? "dict_keys" : "dict_values";
  return kind_name(value.kind);
}

std::string undefined_message(const Value& value) {
  const std::string owner = value.owner == Kind::None ? "None" : std::string(kind_name(value.owner)) + " object";
  switch (static_cast<Absent>(value.detail)) {
    case Absent::Name: return "'" + std::string(value.symbol->text) + "' is undefined";
    case Absent::Attribute: return "'" + owner + "' has no attribute '" + std::string(value.symbol->text) + "'";
    case Absent::Element: return owner + " has no element " + std::to_string(value.integer);
    case Absent::Unsafe:
      return "access to attribute '" + std::string(value.symbol->text) + "' of '" + kind_name(value.owner) +
             "' object is unsafe.";
    case Absent::Hint: return value.hint;
  }
  return "undefined";
}

void fail_undefined(const Value& value) { throw Failure(undefined_message(value)); }

bool truth(const Value& v) {
  switch (v.kind) {
    case Kind::Missing:
    case Kind::Undefined:
    case Kind::None: return false;
    case Kind::Bool:
    case Kind::Int: return v.integer != 0;
    case Kind::Float: return v.number != 0;
    case Kind::Text: return v.text->size != 0;
    case Kind::List:
    case Kind::Tuple:
    case Kind::Range: return v.list->size != 0;
    case Kind::Dict:
    case Kind::View: return v.dict->size != 0;
    default: return true;
  }
}

bool identical(const Value& a, const Value& b) {
  if (a.kind != b.kind) return false;
  if (a.is_none()) return true;
  if (a.is_undefined()) return false;
  if (a.is_text() && a.detail == b.detail && a.text->size <= 1 && a.text->size == b.text->size && a.text->bytes &&
      b.text->bytes)
    return !a.text->size || *a.text->bytes == *b.text->bytes;
  return a.integer == b.integer;
}

static bool equal_items(Workspace& workspace, const List& a, const List& b) {
  if (a.size != b.size) return false;
  for (uint32_t i = 0; i < a.size; i++) {
    workspace.spend(1);
    if (!equal(workspace, a.items[i], b.items[i])) return false;
  }
  return true;
}

static bool equal_dicts(Workspace& workspace, const Dict& a, const Dict& b, bool values) {
  if (a.size != b.size) return false;
  for (const Entry& entry : a) {
    workspace.spend(1);
    const Value* const other = entry.symbol ? b.find(entry.symbol) : b.find(workspace, entry.key);
    if (!other || (values && !equal(workspace, entry.value, *other))) return false;
  }
  return true;
}

bool equal(Workspace& workspace, const Value& a, const Value& b) {
  if (a.is_text() && b.is_text()) {
    if (a.text == b.text) return true;
    if (a.text->size != b.text->size) return false;
    workspace.spend_bytes(a.text->size);
    return workspace.flat(a.text) == workspace.flat(b.text);
  }
  if (a.is_number() && b.is_number()) return compare(workspace, a, b) == 0;
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::None:
    case Kind::Undefined:
    case Kind::Missing: return true;
    case Kind::List:
    case Kind::Tuple:
    case Kind::Range: {
      if (a.list == b.list) return true;
      Depth depth(workspace);
      return equal_items(workspace, *a.list, *b.list);
    }
    case Kind::Dict: {
      if (a.dict == b.dict) return true;
      Depth depth(workspace);
      return equal_dicts(workspace, *a.dict, *b.dict, true);
    }
    case Kind::View: {
      if (a.detail != b.detail || a.detail == static_cast<uint8_t>(ViewKind::Values)) return false;
      Depth depth(workspace);
      return equal_dicts(workspace, *a.dict, *b.dict, a.detail == static_cast<uint8_t>(ViewKind::Items));
    }
    case Kind::Method: return a.method->method == b.method->method && identical(a.method->self, b.method->self);
    default: return a.integer == b.integer;
  }
}

static int compare_numbers(const Value& a, const Value& b) {
  if (a.is_integer() && b.is_integer()) return a.integer < b.integer ? -1 : a.integer > b.integer;
  if (a.kind == Kind::BigInt || b.kind == Kind::BigInt) return compare_big(a, b);
  const long double x =
      a.kind == Kind::Float ? static_cast<long double>(a.number) : static_cast<long double>(a.integer);
  const long double y =
      b.kind == Kind::Float ? static_cast<long double>(b.number) : static_cast<long double>(b.integer);
  return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
}

int compare(Workspace& workspace, const Value& a, const Value& b, const char* operation) {
  if (a.is_text() && b.is_text()) {
    workspace.spend_bytes(std::min(a.text->size, b.text->size));
    const int order = workspace.flat(a.text).compare(workspace.flat(b.text));
    return order < 0 ? -1 : order > 0;
  }
  if (a.is_number() && b.is_number()) return compare_numbers(a, b);
  if (a.is_undefined()) fail_undefined(a);
  if (b.is_undefined()) fail_undefined(b);
  if (a.kind == b.kind && (a.kind == Kind::List || a.kind == Kind::Tuple)) {
    Depth depth(workspace);
    for (uint32_t i = 0; i < std::min(a.list->size, b.list->size); i++) {
      workspace.spend(1);
      if (!equal(workspace, a.list->items[i], b.list->items[i]))
        return compare(workspace, a.list->items[i], b.list->items[i], operation);
    }
    return a.list->size < b.list->size ? -1 : a.list->size > b.list->size;
  }
  type_error("'", operation, "' not supported between instances of '", type_name(a), "' and '", type_name(b), "'");
}

int64_t length(Workspace& workspace, const Value& value) {
  switch (value.kind) {
    case Kind::Text: return static_cast<int64_t>(workspace.length(value.text));
    case Kind::List:
    case Kind::Tuple:
    case Kind::Range: return value.list->size;
    case Kind::Dict:
    case Kind::View: return value.dict->size;
    case Kind::Undefined:
    case Kind::Missing: return 0;
    default: type_error("object of type '", type_name(value), "' has no len()");
  }
}

void check_hashable(Workspace& workspace, const Value& key) {
  Depth depth(workspace);
  workspace.spend(1);
  if (key.kind == Kind::List || key.kind == Kind::Dict || key.kind == Kind::View)
    type_error("unhashable type: '", type_name(key), "'");
  if (key.kind == Kind::Tuple)
    for (const Value& item : *key.list) check_hashable(workspace, item);
}

}  // namespace tokenweir::templates
