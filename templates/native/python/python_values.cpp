#include "python/python_values.h"

#include "base/gil.h"
#include "input/message_checks.h"
#include "text/characters.h"
#include "values/bigint.h"
#include "values/json.h"

namespace tokenweir::templates {

namespace {

// A new reference, or PythonError.
PyObject* checked(PyObject* object) {
  if (!object) throw PythonError{};
  return object;
}

// Owns a reference.
struct Reference {
  explicit Reference(PyObject* object) : object(checked(object)) {}
  ~Reference() { Py_DECREF(object); }
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;
  PyObject* const object;
};

bool is_instance_of(PyObject* object, const char* abstract) {
  const Reference module(PyImport_ImportModule("collections.abc"));
  const Reference type(PyObject_GetAttrString(module.object, abstract));
  const int is = call_python([&] { return PyObject_IsInstance(object, type.object); });
  if (is < 0) throw PythonError{};
  return is;
}

bool is_model(PyObject* object) {
  return !PyType_Check(object) && call_python([&] { return PyObject_HasAttrString(object, "model_dump"); });
}

std::string type_name_of(PyObject* object) {
  const Reference name(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__name__"));
  const char* const text = PyUnicode_AsUTF8AndSize(name.object, nullptr);
  if (!text) throw PythonError{};
  return text;
}

}  // namespace

PythonInput::~PythonInput() {
  for (PyObject* const object : held_) Py_DECREF(object);
}

void PythonInput::hold(PyObject* object) {
  Py_INCREF(object);
  held_.push_back(object);
}

void PythonInput::refuse(uint32_t origin, const std::string& what) const {
  throw BadInput(prefix_ + origins_.path(origin) + what);
}

void PythonInput::enter(uint32_t origin) {
  if (depth_ == kMostInputDepth) throw BadInput(nested_too_deep(prefix_ + origins_.path(origin)));
  depth_++;
}

void PythonInput::read_variables(PyObject* variables, Rendering& rendering, const std::set<std::string>& vouched) {
  const auto read = [&](PyObject* name, PyObject* item) {
    if (!PyUnicode_Check(name)) type_error("the name of a variable must be str, not " + type_name_of(name));
    const bool is_vouched = !vouched.empty() && vouched.contains(std::string(utf8(name, 0, "a key of ")));
    read_variable(name, item, rendering, is_vouched);
  };
  if (PyBytes_Check(variables)) {
    read_json_bytes(variables, rendering, vouched);
  } else if (PyDict_CheckExact(variables)) {
    PyObject *name, *item;
    for (Py_ssize_t at = 0; PyDict_Next(variables, &at, &name, &item);) read(name, item);
  } else {
    if (!is_instance_of(variables, "Mapping"))
      type_error("variables must be a mapping or the bytes of a JSON object, not " + type_name_of(variables));
    const Reference items(call_python([&] { return PyMapping_Items(variables); }));
    const Py_ssize_t size = PyList_Size(items.object);
    for (Py_ssize_t i = 0; i < size; i++) {
      PyObject* const pair = PyList_GetItem(items.object, i);
      read(PyTuple_GetItem(pair, 0), PyTuple_GetItem(pair, 1));
    }
  }
}

void PythonInput::read_json_bytes(PyObject* bytes, Rendering& rendering, const std::set<std::string>& vouched) {
  hold(bytes);
  const std::string_view text{PyBytes_AsString(bytes), static_cast<size_t>(PyBytes_Size(bytes))};
  const Value body = templates::read_variables(workspace_, origins_, text, vouched);
  if (body.kind != Kind::Dict)
    type_error(std::string("the JSON of variables must be an object, not a ") + type_name(body));
  for (uint32_t i = 0; i < body.dict->size; i++) {
    const Entry& entry = body.dict->entries[i];
    rendering.inputs().set(workspace_, entry.symbol, entry.key, entry.value);
  }
}

void PythonInput::read_variable(PyObject* name, PyObject* item, Rendering& rendering, bool vouched) {
  Symbol* const symbol = this->symbol(name, 0);
  const uint32_t origin = origins_.add_variable(symbol);
  origins_.at(origin).vouched = vouched;
  prefix_ = "variables.";
  depth_ = 1;
  rendering.inputs().set(workspace_, symbol, Value::of_text(shown(workspace_, symbol)), value(item, origin));
  depth_ = 0;
  prefix_ = "";
}

List* PythonInput::mappings(PyObject* values, uint32_t origin) {
  const Reference items(this->items(values, origin));
  List* const list = List::make(workspace_, static_cast<uint32_t>(PyList_Size(items.object)));
  add_mappings(*list, items.object, 0, origin);
  return list;
}

PyObject* PythonInput::items(PyObject* values, uint32_t origin) const {
  if (!PyList_Check(values) && !PyTuple_Check(values) &&
      (PyUnicode_Check(values) || PyBytes_Check(values) || !is_instance_of(values, "Sequence")))
    throw BadInput(not_a_list(origins_.path(origin), type_name_of(values)));
  return checked(call_python([&] { return PySequence_List(values); }));
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
  if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) throw PythonError{};
  PyObject *type, *error, *trace;
  PyErr_Fetch(&type, &error, &trace);
  PyErr_NormalizeException(&type, &error, &trace);
  Py_ssize_t start = 0;
  PyUnicodeEncodeError_GetStart(error, &start);
  Py_XDECREF(type);
  Py_XDECREF(error);
  Py_XDECREF(trace);
  char name[8];
  std::snprintf(name, sizeof name, "U+%04X", static_cast<unsigned>(PyUnicode_ReadChar(object, start)));
  const std::string path = origin < Origins::kFirst ? "variables" : prefix_ + origins_.path(origin);
  throw BadText(what + path + " has the lone surrogate " + name + " at character " + std::to_string(start));
}

Symbol* PythonInput::symbol(PyObject* key, uint32_t origin) {
  Key& cached = keys_[reinterpret_cast<uintptr_t>(key) / 16 % kKeys];
  if (cached.object != key) {
    cached.symbol = workspace_.symbols.intern(utf8(key, origin, "a key of "));
    cached.object = key;
    hold(key);  // else another key could come to lie there
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
  hold(object);
  return Value::of_text(workspace_.leaf(bytes, origin, 0, ascii));
}

Value PythonInput::integer(PyObject* object, uint32_t origin) {
  int overflow;
  const long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (!overflow) {
    if (number == -1 && PyErr_Occurred()) throw PythonError{};
    return Value::of_int(number);
  }
  PyObject* const digits = PyNumber_ToBase(object, 10);
  if (!digits) {
    PyErr_Clear();
    refuse(origin, " has more than " + std::to_string(kMostDigits) + " digits");
  }
  const Reference owned(digits);
  return integer_of(workspace_, utf8(digits, origin, ""));
}

void PythonInput::add_entry(Dict& dict, PyObject* key, PyObject* item, uint32_t origin) {
  if (!PyUnicode_Check(key)) {
    const Reference shown(call_python([&] { return PyObject_Repr(key); }));
    refuse(origin, " has the key " + std::string(utf8(shown.object, origin, "")) + ", which is not a string");
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
  const Reference kept((Py_INCREF(object), object));
  enter(origin);
  Dict* const dict = Dict::make(workspace_, static_cast<uint32_t>(PyDict_Size(object)));
  PyObject *key, *item;
  for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &item);) add_entry(*dict, key, item, origin);
  depth_--;
  return Value::of_dict(dict);
}

Value PythonInput::sequence(PyObject* object, uint32_t origin) {
  const Reference kept((Py_INCREF(object), object));
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

Value PythonInput::mapping_of_items(PyObject* object, uint32_t origin) {
  enter(origin);
  const Reference items(call_python([&] { return PyMapping_Items(object); }));
  const Py_ssize_t size = PyList_Size(items.object);
  Dict* const dict = Dict::make(workspace_, static_cast<uint32_t>(size));
  for (Py_ssize_t i = 0; i < size; i++) {
    PyObject* const pair = PyList_GetItem(items.object, i);
    add_entry(*dict, PyTuple_GetItem(pair, 0), PyTuple_GetItem(pair, 1), origin);
  }
  depth_--;
  return Value::of_dict(dict);
}

// Mappings, sequences and pydantic's models; anything else is refused.
Value PythonInput::other(PyObject* object, uint32_t origin) {
  const Reference kept((Py_INCREF(object), object));
  if (is_model(object)) {
    const Depth depth(workspace_);  // a model may give another one
    const Reference dumped(call_python([&] { return PyObject_CallMethod(object, "model_dump", nullptr); }));
    return value(dumped.object, origin);
  }
  if (is_instance_of(object, "Mapping")) return mapping_of_items(object, origin);
  if (!PyBytes_Check(object) && is_instance_of(object, "Sequence")) {
    const Reference list(call_python([&] { return PySequence_List(object); }));
    return sequence(list.object, origin);
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

PyObject* to_python(const Value& value) {
  switch (value.kind) {
    case Kind::Bool: return PyBool_FromLong(static_cast<long>(value.integer));
    case Kind::Int: return checked(PyLong_FromLongLong(value.integer));
    case Kind::Float: return checked(PyFloat_FromDouble(value.number));
    case Kind::BigInt: return checked(PyLong_FromString(digits_of(value).c_str(), nullptr, 10));
    case Kind::Text:
      return checked(PyUnicode_FromStringAndSize(value.text->bytes, static_cast<Py_ssize_t>(value.text->size)));
    case Kind::List:
    case Kind::Tuple: {
      const auto size = static_cast<Py_ssize_t>(value.list->size);
      const bool is_list = value.kind == Kind::List;
      const Reference made(is_list ? PyList_New(size) : PyTuple_New(size));
      for (Py_ssize_t i = 0; i < size; i++) {
        PyObject* const item = to_python(value.list->items[i]);  // the list takes the reference
        if ((is_list ? PyList_SetItem(made.object, i, item) : PyTuple_SetItem(made.object, i, item)) < 0)
          throw PythonError{};
      }
      return Py_NewRef(made.object);
    }
    case Kind::Dict: {
      const Reference made(PyDict_New());
      for (uint32_t i = 0; i < value.dict->size; i++) {
        const Entry& entry = value.dict->entries[i];
        const Reference key(to_python(entry.key)), item(to_python(entry.value));
        if (PyDict_SetItem(made.object, key.object, item.object) < 0) throw PythonError{};
      }
      return Py_NewRef(made.object);
    }
    default: return Py_NewRef(Py_None);
  }
}

}  // namespace tokenweir::templates
