#include "python/python_values.h"

#include "base/gil.h"
#include "input/message_checks.h"
#include "text/characters.h"
#include "values/bigint.h"
#include "values/json.h"

namespace tokenweir::templates {

namespace nb = nanobind;

namespace {

// Takes over a new reference, or throws the error that is set.
nb::object owned(PyObject* object) {
  if (!object) throw nb::python_error();
  return nb::steal(object);
}

bool is_instance_of(PyObject* object, const char* abstract) {
  const nb::object module = owned(PyImport_ImportModule("collections.abc"));
  const nb::object type = owned(PyObject_GetAttrString(module.ptr(), abstract));
  const int is = call_python([&] { return PyObject_IsInstance(object, type.ptr()); });
  if (is < 0) throw nb::python_error();
  return is;
}

bool is_model(PyObject* object) {
  return !PyType_Check(object) && call_python([&] { return PyObject_HasAttrString(object, "model_dump"); });
}

// Calls `visit(key, item)` for each item of a mapping.
template <class Visit>
void each_item(PyObject* mapping, Visit&& visit) {
  if (PyDict_CheckExact(mapping)) {
    PyObject *key, *item;
    for (Py_ssize_t at = 0; PyDict_Next(mapping, &at, &key, &item);) visit(key, item);
    return;
  }
  const nb::object items = owned(call_python([&] { return PyMapping_Items(mapping); }));
  const Py_ssize_t size = PyList_Size(items.ptr());
  for (Py_ssize_t i = 0; i < size; i++) {
    PyObject* const pair = PyList_GetItem(items.ptr(), i);
    visit(PyTuple_GetItem(pair, 0), PyTuple_GetItem(pair, 1));
  }
}

std::string type_name_of(PyObject* object) {
  const nb::object name = owned(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__name__"));
  const char* const text = PyUnicode_AsUTF8AndSize(name.ptr(), nullptr);
  if (!text) throw nb::python_error();
  return text;
}

}  // namespace

void PythonInput::refuse(uint32_t origin, const std::string& what) const {
  throw BadInput(joined(prefix_, origins_.path(origin), what));
}

void PythonInput::enter(uint32_t origin) {
  if (depth_ == kMostInputDepth) throw BadInput(nested_too_deep(prefix_ + origins_.path(origin)));
  depth_++;
}

void PythonInput::read_variables(PyObject* variables, Rendering& rendering, const std::set<std::string>& vouched) {
  const auto read = [&](PyObject* name, PyObject* item) {
    if (!PyUnicode_Check(name)) type_error("the name of a variable must be str, not ", type_name_of(name));
    const bool is_vouched = !vouched.empty() && vouched.contains(std::string(utf8(name, 0, "a key of ")));
    read_variable(name, item, rendering, is_vouched);
  };
  if (PyBytes_Check(variables)) {
    read_json_bytes(variables, rendering, vouched);
  } else {
    if (!PyDict_CheckExact(variables) && !is_instance_of(variables, "Mapping"))
      type_error("variables must be a mapping or the bytes of a JSON object, not ", type_name_of(variables));
    each_item(variables, read);
  }
}

void PythonInput::read_json_bytes(PyObject* bytes, Rendering& rendering, const std::set<std::string>& vouched) {
  held_.push_back(nb::borrow(bytes));
  const std::string_view text{PyBytes_AsString(bytes), static_cast<size_t>(PyBytes_Size(bytes))};
  const Value body = templates::read_variables(workspace_, origins_, text, vouched);
  if (body.kind != Kind::Dict) type_error("the JSON of variables must be an object, not a ", type_name(body));
  for (const Entry& entry : *body.dict) rendering.inputs().set(workspace_, entry.symbol, entry.key, entry.value);
}

void PythonInput::read_variable(PyObject* name, PyObject* item, Rendering& rendering, bool vouched) {
  Symbol* const symbol = this->symbol(name, 0);
  const uint32_t origin = origins_.add_variable(symbol);
  origins_.at(origin).vouched = vouched;
  prefix_ = "variables.";
  depth_ = 1;
  set_name(workspace_, rendering.inputs(), symbol, value(item, origin));
  depth_ = 0;
  prefix_ = "";
}

List* PythonInput::mappings(PyObject* values, uint32_t origin) {
  const nb::object items = this->items(values, origin);
  List* const list = List::make(workspace_, static_cast<uint32_t>(PyList_Size(items.ptr())));
  add_mappings(*list, items.ptr(), 0, origin);
  return list;
}

nb::object PythonInput::items(PyObject* values, uint32_t origin) const {
  if (!PyList_Check(values) && !PyTuple_Check(values) &&
      (PyUnicode_Check(values) || PyBytes_Check(values) || !is_instance_of(values, "Sequence")))
    throw BadInput(not_a_list(origins_.path(origin), type_name_of(values)));
  return owned(call_python([&] { return PySequence_List(values); }));
}

void PythonInput::add_mappings(List& list, PyObject* items, Py_ssize_t begin, uint32_t origin) {
  for (Py_ssize_t i = begin; i < PyList_Size(items); i++) {
    const uint32_t item = origins_.add(origin, Origin::Step::Item, nullptr, static_cast<uint32_t>(i));
    list.add(workspace_, mapping(PyList_GetItem(items, i), item));
  }
}

std::string_view PythonInput::utf8(PyObject* object, uint32_t origin, const char* what) {
  Py_ssize_t size;
  const char* const bytes = PyUnicode_AsUTF8AndSize(object, &size);
  if (bytes) return {bytes, static_cast<size_t>(size)};
  nb::python_error error;
  if (!error.matches(PyExc_UnicodeEncodeError)) throw error;
  const auto start = nb::cast<Py_ssize_t>(error.value().attr("start"));
  char name[8];
  std::snprintf(name, sizeof name, "U+%04X", static_cast<unsigned>(PyUnicode_ReadChar(object, start)));
  const std::string path = origin < Origins::kFirst ? "variables" : prefix_ + origins_.path(origin);
  throw BadText(joined(what, path, " has the lone surrogate ", name, " at character ", start));
}

Symbol* PythonInput::symbol(PyObject* key, uint32_t origin) {
  Key& cached = keys_[reinterpret_cast<uintptr_t>(key) / 16 % kKeys];
  if (cached.object != key) {
    cached.symbol = workspace_.symbols.intern(utf8(key, origin, "a key of "));
    cached.object = key;
    held_.push_back(nb::borrow(key));  // else another key could come to lie there
  }
  return cached.symbol;
}

Value PythonInput::value(PyObject* object, uint32_t origin) {
  Value made;
  if (PyUnicode_Check(object)) return text(object, origin);
  if (PyDict_CheckExact(object))
    made = dict(object, origin);
  else if (PyList_Check(object) || PyTuple_Check(object))
    made = sequence(object, origin);
  else if (object == Py_None)
    made = Value::none();
  else if (PyBool_Check(object))
    made = Value::boolean(object == Py_True);
  else if (PyLong_Check(object))
    made = integer(object, origin);
  else if (PyFloat_Check(object))
    made = Value::of_float(PyFloat_AsDouble(object));
  else
    made = other(object, origin);
  if (!made.is_text()) made.origin = origin;
  return made;
}

Value PythonInput::text(PyObject* object, uint32_t origin) {
  const std::string_view bytes = utf8(object, origin, "");
  origins_.at(origin).is_text = !bytes.empty();
  if (bytes.size() > Rendering::kMostText)
    refuse(origin, " is longer than the limit of " + std::to_string(Rendering::kMostText) + " bytes");
  // Known here as it is known of JSON, so that both forms of an input cost the same steps.
  const int8_t ascii = PyUnicode_GetLength(object) == static_cast<Py_ssize_t>(bytes.size());
  if (bytes.size() <= kShort) {
    Text* const copied = workspace_.copy(bytes, origin);
    copied->ascii = ascii;
    return Value::of_text(copied);
  }
  held_.push_back(nb::borrow(object));
  return Value::of_text(workspace_.leaf(bytes, origin, 0, ascii));
}

Value PythonInput::integer(PyObject* object, uint32_t origin) {
  int overflow;
  const long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (!overflow) {
    if (number == -1 && PyErr_Occurred()) throw nb::python_error();
    return Value::of_int(number);
  }
  const nb::object digits = nb::steal(PyNumber_ToBase(object, 10));
  if (!digits.is_valid()) {
    PyErr_Clear();
    refuse(origin, " has more than " + std::to_string(kMostDigits) + " digits");
  }
  return integer_of(workspace_, utf8(digits.ptr(), origin, ""));
}

void PythonInput::add_entry(Dict& dict, PyObject* key, PyObject* item, uint32_t origin) {
  if (!PyUnicode_Check(key)) {
    const nb::object shown = owned(call_python([&] { return PyObject_Repr(key); }));
    refuse(origin, " has the key " + std::string(utf8(shown.ptr(), origin, "")) + ", which is not a string");
  }
  Symbol* const symbol = this->symbol(key, origin);
  const uint32_t key_origin = origins_.add(origin, Origin::Step::Key, symbol);
  origins_.at(key_origin).is_text = true;
  // Appended, not set: the keys of a dict are all different.
  const Value shown = Value::of_text(workspace_.leaf(symbol->text, key_origin, 0, is_ascii(symbol->text)));
  dict.append(workspace_, {symbol, shown, value(item, origins_.add(origin, Origin::Step::Value, symbol))});
}

// Objects are held while their items are read, for the code of a mapping or model may drop them.

Value PythonInput::dict(PyObject* object, uint32_t origin) {
  const nb::object kept = nb::borrow(object);
  enter(origin);
  constexpr uint32_t kUsual = 8;  // entries of other mappings, which may tell their size by code
  Dict* const dict =
      Dict::make(workspace_, PyDict_CheckExact(object) ? static_cast<uint32_t>(PyDict_Size(object)) : kUsual);
  each_item(object, [&](PyObject* key, PyObject* item) { add_entry(*dict, key, item, origin); });
  depth_--;
  return Value::of_dict(dict);
}

Value PythonInput::sequence(PyObject* object, uint32_t origin) {
  const nb::object kept = nb::borrow(object);
  enter(origin);
  const bool is_list = PyList_Check(object);
  List* const list =
      List::make(workspace_, static_cast<uint32_t>(is_list ? PyList_Size(object) : PyTuple_Size(object)));
  for (Py_ssize_t i = 0; i < (is_list ? PyList_Size(object) : PyTuple_Size(object)); i++) {
    PyObject* const item = is_list ? PyList_GetItem(object, i) : PyTuple_GetItem(object, i);
    list->add(workspace_, value(item, origins_.add(origin, Origin::Step::Item, nullptr, static_cast<uint32_t>(i))));
  }
  depth_--;
  return is_list ? Value::of_list(list) : Value::of_tuple(list);
}

// Mappings, sequences and pydantic's models; anything else is refused.
Value PythonInput::other(PyObject* object, uint32_t origin) {
  const nb::object kept = nb::borrow(object);
  if (is_model(object)) {
    const Depth depth(workspace_);  // a model may give another one
    const nb::object dumped = owned(call_python([&] { return PyObject_CallMethod(object, "model_dump", nullptr); }));
    return value(dumped.ptr(), origin);
  }
  if (is_instance_of(object, "Mapping")) return dict(object, origin);
  if (!PyBytes_Check(object) && is_instance_of(object, "Sequence")) {
    const nb::object list = owned(call_python([&] { return PySequence_List(object); }));
    return sequence(list.ptr(), origin);
  }
  refuse(origin, " of type " + type_name_of(object) + " cannot be given to templates");
}

Value PythonInput::mapping(PyObject* object, uint32_t origin) {
  Value made;
  if (PyDict_CheckExact(object))
    made = dict(object, origin);
  else if (is_model(object) || is_instance_of(object, "Mapping"))
    made = other(object, origin);
  if (made.kind != Kind::Dict) throw BadInput(not_a_mapping(prefix_ + origins_.path(origin), type_name_of(object)));
  made.origin = origin;
  return made;
}

nb::object to_python(const Value& value) {
  switch (value.kind) {
    case Kind::Bool: return nb::bool_(value.integer != 0);
    case Kind::Int: return nb::int_(value.integer);
    case Kind::Float: return nb::float_(value.number);
    case Kind::BigInt: return nb::int_(nb::str(digits_of(value).c_str()));
    case Kind::Text: return nb::str(value.text->bytes, value.text->size);
    case Kind::List:
    case Kind::Tuple: {
      nb::list list;
      for (const Value& item : *value.list) list.append(to_python(item));
      if (value.kind == Kind::Tuple) return nb::tuple(list);
      return list;
    }
    case Kind::Dict: {
      nb::dict dict;
      for (const Entry& entry : *value.dict) dict[to_python(entry.key)] = to_python(entry.value);
      return dict;
    }
    default: return nb::none();
  }
}

}  // namespace tokenweir::templates
