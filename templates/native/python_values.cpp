#include "python_values.h"

#include "bigint.h"
#include "characters.h"
#include "json.h"

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
  const int is = PyObject_IsInstance(object, type.object);
  if (is < 0) throw PythonError{};
  return is;
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
  throw Failure(rendering_.origins().path(origin) + what);
}

void PythonInput::read(PyObject* variables) {
  if (PyBytes_Check(variables)) {
    read_json_bytes(variables);
  } else if (PyDict_CheckExact(variables)) {
    PyObject *name, *item;
    for (Py_ssize_t at = 0; PyDict_Next(variables, &at, &name, &item);) read_variable(name, item);
  } else {
    if (!is_instance_of(variables, "Mapping"))
      type_error("variables must be a mapping or the bytes of a JSON object, not " + type_name_of(variables));
    const Reference items(PyMapping_Items(variables));
    const Py_ssize_t size = PyList_Size(items.object);
    for (Py_ssize_t i = 0; i < size; i++) {
      PyObject* const pair = PyList_GetItem(items.object, i);
      read_variable(PyTuple_GetItem(pair, 0), PyTuple_GetItem(pair, 1));
    }
  }
}

void PythonInput::read_json_bytes(PyObject* bytes) {
  hold(bytes);
  Workspace& workspace = rendering_.workspace();
  const std::string_view text{PyBytes_AsString(bytes), static_cast<size_t>(PyBytes_Size(bytes))};
  const Value body = read_variables(workspace, rendering_.origins(), text, vouched_);
  if (body.kind != Kind::Dict) type_error(std::string("the JSON of variables must be an object, not a ") + type_name(body));
  for (uint32_t i = 0; i < body.dict->size; i++) {
    const Entry& entry = body.dict->entries[i];
    rendering_.inputs().set(workspace, entry.symbol, entry.key, entry.value);
  }
}

void PythonInput::read_variable(PyObject* name, PyObject* item) {
  if (!PyUnicode_Check(name)) type_error("the name of a variable must be str, not " + type_name_of(name));
  Workspace& workspace = rendering_.workspace();
  Symbol* const symbol = this->symbol(name, 0);
  const uint32_t origin = rendering_.origins().add_variable(symbol);
  if (!vouched_.empty() && vouched_.contains(std::string(symbol->text))) rendering_.origins().at(origin).vouched = true;
  rendering_.inputs().set(workspace, symbol, Value::of_text(shown(workspace, symbol)), value(item, origin));
}

std::string_view PythonInput::utf8(PyObject* object, uint32_t origin, const char* what) {
  Py_ssize_t size;
  const char* const bytes = PyUnicode_AsUTF8AndSize(object, &size);
  if (!bytes) {
    if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) throw PythonError{};
    PyErr_Clear();
    throw BadText(what + rendering_.origins().path(origin) + " has a lone surrogate, which has no UTF-8 form");
  }
  return {bytes, static_cast<size_t>(size)};
}

Symbol* PythonInput::symbol(PyObject* key, uint32_t origin) {
  Key& cached = keys_[reinterpret_cast<uintptr_t>(key) / 16 % kKeys];
  if (cached.object != key) {
    cached.symbol = rendering_.workspace().symbols.intern(utf8(key, origin, "a key of "));
    cached.object = key;
    hold(key);  // else another key could come to lie there
  }
  return cached.symbol;
}

Value PythonInput::value(PyObject* object, uint32_t origin) {
  Value made;
  if (PyUnicode_Check(object)) return text(object, origin);
  if (PyDict_CheckExact(object)) return dict(object, origin);
  if (PyList_Check(object) || PyTuple_Check(object)) return sequence(object, origin);
  if (object == Py_None) made = Value::none();
  else if (PyBool_Check(object)) made = Value::boolean(object == Py_True);
  else if (PyLong_Check(object)) made = integer(object, origin);
  else if (PyFloat_Check(object)) made = Value::of_float(PyFloat_AsDouble(object));
  else return other(object, origin);
  made.origin = origin;
  return made;
}

Value PythonInput::text(PyObject* object, uint32_t origin) {
  Workspace& workspace = rendering_.workspace();
  const std::string_view bytes = utf8(object, origin, "");
  rendering_.origins().at(origin).is_text = !bytes.empty();
  if (bytes.size() > Rendering::kMostText)
    refuse(origin, " is longer than the limit of " + std::to_string(Rendering::kMostText) + " bytes");
  // Known here as it is known of JSON, so that both forms of an input cost the same steps.
  const int8_t ascii = is_ascii(bytes);
  if (bytes.size() <= kShort) {
    Text* const copied = workspace.copy(bytes, origin);
    copied->ascii = ascii;
    return Value::of_text(copied);
  }
  hold(object);
  return Value::of_text(workspace.leaf(bytes, origin, 0, ascii));
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
  return integer_of(rendering_.workspace(), utf8(digits, origin, ""));
}

void PythonInput::add_entry(Dict& dict, PyObject* key, PyObject* item, uint32_t origin) {
  Workspace& workspace = rendering_.workspace();
  Origins& origins = rendering_.origins();
  if (!PyUnicode_Check(key)) {
    const Reference shown(PyObject_Repr(key));
    refuse(origin, " has the key " + std::string(utf8(shown.object, origin, "")) + ", which is not a string");
  }
  Symbol* const symbol = this->symbol(key, origin);
  const uint32_t key_origin = origins.add(origin, Origin::Step::Key, symbol);
  origins.at(key_origin).is_text = true;
  // Appended, not set: the keys of a dict are all different.
  const Value shown = Value::of_text(workspace.leaf(symbol->text, key_origin, 0, is_ascii(symbol->text)));
  dict.append(workspace, {symbol, shown, value(item, origins.add(origin, Origin::Step::Value, symbol))});
}

Value PythonInput::dict(PyObject* object, uint32_t origin) {
  Depth depth(rendering_.workspace());
  Dict* const dict = Dict::make(rendering_.workspace(), static_cast<uint32_t>(PyDict_Size(object)));
  PyObject *key, *item;
  for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &item);) add_entry(*dict, key, item, origin);
  return Value::of_dict(dict);
}

Value PythonInput::sequence(PyObject* object, uint32_t origin) {
  Workspace& workspace = rendering_.workspace();
  Depth depth(workspace);
  const bool is_list = PyList_Check(object);
  List* const list = List::make(workspace, static_cast<uint32_t>(is_list ? PyList_Size(object) : PyTuple_Size(object)));
  for (Py_ssize_t i = 0; i < (is_list ? PyList_Size(object) : PyTuple_Size(object)); i++) {
    PyObject* const item = is_list ? PyList_GetItem(object, i) : PyTuple_GetItem(object, i);
    const Reference kept((Py_INCREF(item), item));  // code of a mapping or model may change the list
    list->add(workspace, value(item, rendering_.origins().add(origin, Origin::Step::Item, nullptr, static_cast<uint32_t>(i))));
  }
  return is_list ? Value::of_list(list) : Value::of_tuple(list);
}

// Mappings, sequences and pydantic's models; anything else is refused.
Value PythonInput::other(PyObject* object, uint32_t origin) {
  Depth depth(rendering_.workspace());
  if (!PyType_Check(object) && PyObject_HasAttrString(object, "model_dump")) {
    const Reference dumped(PyObject_CallMethod(object, "model_dump", nullptr));
    return value(dumped.object, origin);
  }
  if (is_instance_of(object, "Mapping")) {
    const Reference items(PyMapping_Items(object));
    const Py_ssize_t size = PyList_Size(items.object);
    Dict* const dict = Dict::make(rendering_.workspace(), static_cast<uint32_t>(size));
    for (Py_ssize_t i = 0; i < size; i++) {
      PyObject* const pair = PyList_GetItem(items.object, i);
      add_entry(*dict, PyTuple_GetItem(pair, 0), PyTuple_GetItem(pair, 1), origin);
    }
    return Value::of_dict(dict);
  }
  if (!PyBytes_Check(object) && is_instance_of(object, "Sequence")) {
    const Reference list(PySequence_List(object));
    return sequence(list.object, origin);
  }
  refuse(origin, " of type " + type_name_of(object) + " cannot be given to templates");
}

}  // namespace tokenweir::templates
