// The values of a template, as Python has them: 16 bytes each, never changed once made, except namespaces.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "text/text.h"

namespace tokenweir::templates {

class Evaluator;
struct BigInt;
struct List;
struct Range;
struct Dict;
struct Generator;
struct MacroValue;
struct BoundMethod;
struct LoopState;
struct Function;
struct Cycler;

enum class Kind : uint8_t {
  Missing,  // an unset variable or argument; templates never see it
  Undefined,
  None,
  Bool,
  Int,
  BigInt,
  Float,
  Text,
  List,
  Tuple,
  Range,
  Dict,
  View,
  Namespace,
  Generator,
  Macro,
  Method,
  Loop,
  Function,
  Cycler,
  Joiner,
};

// The reason for an undefined value.
enum class Absent : uint8_t { Name, Attribute, Element, Hint, Unsafe };
enum class ViewKind : uint8_t { Keys, Values, Items };

struct Value {
  Kind kind = Kind::Missing;
  uint8_t detail = 0;             // Text: Markup; Tuple: a group; View: its ViewKind; Undefined: its Absent
  Kind owner = Kind::Missing;     // Undefined: the kind of value that lacks the attribute
  uint32_t origin = kFromEngine;  // of numbers, booleans and None, and of the lists and objects of an input
  union {
    int64_t integer = 0;
    double number;
    Text* text;
    const char* hint;
    const Symbol* symbol;
    BigInt* big;
    List* list;
    Range* range;
    Dict* dict;
    Generator* generator;
    MacroValue* macro;
    BoundMethod* method;
    LoopState* loop;
    const Function* function;
    Cycler* cycler;
  };

  // A value with one member of the union.
  template <class T>
  static Value of(Kind kind, T Value::* member, std::type_identity_t<T> content, uint8_t detail = 0) {
    Value v;
    v.kind = kind;
    v.detail = detail;
    v.*member = content;
    return v;
  }
  static Value none() { return of(Kind::None, &Value::integer, 0); }
  static Value boolean(bool b) { return of(Kind::Bool, &Value::integer, b); }
  static Value of_int(int64_t i) { return of(Kind::Int, &Value::integer, i); }
  static Value of_float(double d) { return of(Kind::Float, &Value::number, d); }
  static Value of_text(Text* text, bool markup = false) { return of(Kind::Text, &Value::text, text, markup); }
  static Value of_list(List* list) { return of(Kind::List, &Value::list, list); }
  static Value of_tuple(List* list) { return of(Kind::Tuple, &Value::list, list); }
  static Value of_dict(Dict* dict) { return of(Kind::Dict, &Value::dict, dict); }
  static Value of_view(Dict* dict, ViewKind view) {
    return of(Kind::View, &Value::dict, dict, static_cast<uint8_t>(view));
  }
  static Value of_generator(Generator* generator) { return of(Kind::Generator, &Value::generator, generator); }
  static Value undefined_name(const Symbol* name) {
    return of(Kind::Undefined, &Value::symbol, name, static_cast<uint8_t>(Absent::Name));
  }
  static Value undefined_hint(const char* hint) {
    return of(Kind::Undefined, &Value::hint, hint, static_cast<uint8_t>(Absent::Hint));
  }
  // The attribute or the element that a value lacks.
  template <class T>
  static Value undefined_of(const Value& owner, Absent why, T Value::* member, std::type_identity_t<T> lacked) {
    Value v = of(Kind::Undefined, member, lacked, static_cast<uint8_t>(why));
    v.owner = owner.kind;
    return v;
  }

  bool is_missing() const { return kind == Kind::Missing; }
  bool is_undefined() const { return kind == Kind::Undefined; }
  bool is_none() const { return kind == Kind::None; }
  bool is_text() const { return kind == Kind::Text; }
  bool is_markup() const { return kind == Kind::Text && detail; }
  bool is_integer() const { return kind == Kind::Int || kind == Kind::Bool; }  // one of 64 bits
  bool is_number() const { return is_integer() || kind == Kind::Float || kind == Kind::BigInt; }
  bool is_sequence() const { return kind == Kind::List || kind == Kind::Tuple || kind == Kind::Range; }
  bool is_group() const { return kind == Kind::Tuple && detail; }
  double as_float() const { return kind == Kind::Float ? number : static_cast<double>(integer); }
};
static_assert(sizeof(Value) == 16);

// The items of a list, tuple or range.
struct List {
  Value* items;
  uint32_t size, capacity;

  static List* make(Workspace& workspace, uint32_t capacity);
  // Copies `count` items.
  static List* of(Workspace& workspace, const Value* items, uint32_t count);
  Value* begin() const { return items; }
  Value* end() const { return items + size; }
  void add(Workspace& workspace, const Value& value);
};

struct Range : List {
  int64_t start, stop, step;
};

struct Entry {
  Symbol* symbol;  // null: the key is no text
  Value key, value;
};

struct Dict {
  Entry* entries;
  uint32_t size, capacity;
  uint32_t* index;  // hash table of entry numbers plus one, of texts; null in small dicts
  uint32_t index_size;
  bool has_other_keys;  // some key is no text

  static Dict* make(Workspace& workspace, uint32_t capacity);
  Entry* begin() const { return entries; }
  Entry* end() const { return entries + size; }
  Value* find(const Symbol* symbol) const {
    if (index) return find_indexed(symbol);
    for (uint32_t i = 0; i < size; i++)
      if (entries[i].symbol == symbol) return &entries[i].value;
    return nullptr;
  }
  Value* find(Workspace& workspace, const Value& key) const;
  // Sets a key; the place and the key of an equal one stay.
  void set(Workspace& workspace, const Value& key, const Value& value);
  void set(Workspace& workspace, Symbol* symbol, const Value& key, const Value& value);
  // Adds a key that is not there.
  void append(Workspace& workspace, const Entry& entry);
  // Removes the entries whose value is None.
  void drop_none(Workspace& workspace);
  // Removes an entry, if there is one.
  void drop(Workspace& workspace, const Symbol* symbol);

 private:
  static constexpr uint32_t kSmall = 12;
  Value* find_indexed(const Symbol* symbol) const;
  void build_index(Workspace& workspace);
  template <class Test>
  void drop_if(Workspace& workspace, Test&& test);
};

// Yields each item once. Subclasses live in the arena.
struct Generator {
  virtual bool next(Evaluator& evaluator, Value& item) = 0;

 protected:
  ~Generator() = default;
};

struct BoundMethod {
  Value self;
  const Method* method;
};

struct Cycler {  // also a joiner: its separator is the only item
  List* items;
  uint32_t at;
};

// The symbol of a text.
Symbol* symbol_of(Workspace& workspace, Text* text);
// The symbol's text, with the template as its origin.
Text* shown(Workspace& workspace, Symbol* symbol);
// Sets a key that the template, or the name of an argument or a variable, gives.
inline void set_name(Workspace& workspace, Dict& dict, Symbol* symbol, const Value& value) {
  dict.set(workspace, symbol, Value::of_text(shown(workspace, symbol)), value);
}

const char* type_name(const Value& value);
// The message of an undefined value, such as "'x' is undefined".
std::string undefined_message(const Value& value);
[[noreturn]] void fail_undefined(const Value& value);

bool truth(const Value& value);
bool equal(Workspace& workspace, const Value& a, const Value& b);
bool identical(const Value& a, const Value& b);
// Below, equal or above; `operation` is for the message. Unordered floats are 2.
int compare(Workspace& workspace, const Value& a, const Value& b, const char* operation = "<");
// The number of items or characters; fails for kinds without a length.
int64_t length(Workspace& workspace, const Value& value);

// Refuses a key that Python cannot hash.
void check_hashable(Workspace& workspace, const Value& key);

// str() and repr(). The latter adds to a rope.
Text* to_text(Workspace& workspace, const Value& value);
void add_repr(Workspace& workspace, const Value& value, Rope& rope);
Text* repr(Workspace& workspace, const Value& value);
// A number's text has the origin of the number.
Text* number_text(Workspace& workspace, const Value& value);
std::string float_repr(double number);

}  // namespace tokenweir::templates
