// The fast path of `Tokenizer.encode` and `encode_array`, without the interpreter: a text with no options, or with bool
// options.
//
// A short text is encoded in less time than a call of a Python function takes. So these methods are descriptors of the
// core, each wrapping the Python function. Any other call goes to that function. So does a call that fails on the fast
// path: its exception is dropped, and the function raises it, once, with its own wording.

#include "python/bindings.h"
#include "python/py_encoder.h"

#include <cstddef>

#if PY_VERSION_HEX < 0x030C0000
#include <structmember.h>
#define Py_T_PYSSIZET T_PYSSIZET
#define Py_READONLY READONLY
#endif

namespace tokenweir {

namespace {

struct FastCall {
  PyObject_HEAD PyObject* dict;
  PyObject* function;  // the wrapped Python function
  vectorcallfunc call;
};

struct Names {
  PyObject *encoder, *parse_special, *add_special_tokens;
};

PyTypeObject* encoder_type;
Names names;

// Returns the encoder of a Tokenizer; null if it has none yet.
PyEncoder* encoder_of(PyObject* tokenizer, nb::object& owner) {
  owner = nb::steal(PyObject_GetAttr(tokenizer, names.encoder));
  if (!owner.is_valid() || Py_TYPE(owner.ptr()) != encoder_type || !nb::inst_ready(owner)) return nullptr;
  return nb::inst_ptr<PyEncoder>(owner);
}

// Reads the keyword arguments; returns false unless all are options with a bool value.
bool plain_options(PyObject* keywords, PyObject* const* values, bool& parse_special, bool& add_special_tokens) {
  const Py_ssize_t n = keywords ? PyTuple_Size(keywords) : 0;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject* name = PyTuple_GetItem(keywords, i);
    bool* option = name == names.parse_special        ? &parse_special
                   : name == names.add_special_tokens ? &add_special_tokens
                                                      : nullptr;
    if (!option || (values[i] != Py_True && values[i] != Py_False)) return false;
    *option = values[i] == Py_True;
  }
  return true;
}

// Returns `result(encoder, ids)`; null, without an error set, if the call does not qualify for the fast path, or fails
// on it.
template <class Result>
PyObject* fast_path(PyObject* const* args, size_t n, PyObject* keywords, Result&& result) {
  if (n != 2 || !PyUnicode_Check(args[1])) return nullptr;
  bool parse_special = true, add_special_tokens = true;
  if (!plain_options(keywords, args + n, parse_special, add_special_tokens)) return nullptr;
  try {
    nb::object owner;
    PyEncoder* encoder = encoder_of(args[0], owner);
    Py_ssize_t size;
    const char* data = encoder ? PyUnicode_AsUTF8AndSize(args[1], &size) : nullptr;
    if (data) {
      static const PyEncoder::Affix nothing;
      PyEncoder::Call call(*encoder, {data, static_cast<size_t>(size)}, {parse_special, {}});
      call.run(add_special_tokens ? encoder->prefix : nothing, add_special_tokens ? encoder->suffix : nothing);
      return result(*encoder, call.w->ids).release().ptr();
    }
  } catch (...) {  // the Python function raises the same error
    sleep_if_ending(std::current_exception());
  }
  PyErr_Clear();
  return nullptr;
}

template <class Result>
PyObject* fast_path_or_function(PyObject* self, PyObject* const* args, size_t n, PyObject* keywords, Result&& result) {
  PyObject* found = fast_path(args, static_cast<size_t>(PyVectorcall_NARGS(n)), keywords, result);
  return found ? found : PyObject_Vectorcall(reinterpret_cast<FastCall*>(self)->function, args, n, keywords);
}

PyObject* call_encode(PyObject* self, PyObject* const* args, size_t n, PyObject* keywords) {
  const auto result = [](PyEncoder& encoder, IdBuffer& ids) -> nb::object { return encoder.to_list(ids); };
  return fast_path_or_function(self, args, n, keywords, result);
}

PyObject* call_encode_array(PyObject* self, PyObject* const* args, size_t n, PyObject* keywords) {
  const auto result = [](PyEncoder&, IdBuffer& ids) { return id_array(ids); };
  return fast_path_or_function(self, args, n, keywords, result);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  auto* call = reinterpret_cast<FastCall*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(call->dict);
  Py_VISIT(call->function);
  return 0;
}

int clear(PyObject* self) {
  auto* call = reinterpret_cast<FastCall*>(self);
  Py_CLEAR(call->dict);
  Py_CLEAR(call->function);
  return 0;
}

void dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  clear(self);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

PyObject* bind_method(PyObject* self, PyObject* object, PyObject*) {
  if (!object) return Py_NewRef(self);
  static PyObject* const method_type = nb::object(nb::module_::import_("types").attr("MethodType")).release().ptr();
  return PyObject_CallFunctionObjArgs(method_type, self, object, nullptr);
}

PyMemberDef members[] = {
    {"__dictoffset__", Py_T_PYSSIZET, offsetof(FastCall, dict), Py_READONLY, nullptr},
    {"__vectorcalloffset__", Py_T_PYSSIZET, offsetof(FastCall, call), Py_READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyGetSetDef properties[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_members, members},
    {Py_tp_getset, properties},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_descr_get, reinterpret_cast<void*>(bind_method)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {0, nullptr},
};

PyType_Spec spec = {"tokenweir.encode._core.FastCall", sizeof(FastCall), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_METHOD_DESCRIPTOR |
                        Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                    slots};

}  // namespace

void bind_fast_calls(nb::module_& m) {
  encoder_type = reinterpret_cast<PyTypeObject*>(nb::type<PyEncoder>().ptr());
  names = {PyUnicode_InternFromString("_encoder"), PyUnicode_InternFromString("parse_special"),
           PyUnicode_InternFromString("add_special_tokens")};
  const nb::object type = owned(PyType_FromSpec(&spec));
  const auto around = [type](vectorcallfunc call) {
    return [type, call](nb::object function) {
      const nb::object made = owned(PyType_GenericAlloc(reinterpret_cast<PyTypeObject*>(type.ptr()), 0));
      auto* call_object = reinterpret_cast<FastCall*>(made.ptr());
      call_object->function = nb::object(function).release().ptr();
      call_object->call = call;
      nb::module_::import_("functools").attr("update_wrapper")(made, function);
      return made;
    };
  };
  m.def("fast_encode", around(call_encode), "function"_a);
  m.def("fast_encode_array", around(call_encode_array), "function"_a);
}

}  // namespace tokenweir
