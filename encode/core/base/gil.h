// Python's global lock, in a way that survives the end of the interpreter.
//
// Once the interpreter ends, a thread that asks for the lock never gets it. Up to Python 3.13 it is ended by
// pthread_exit instead, which unwinds its stack. Unwinding would run destructors of Python objects without the lock,
// and aborts the process at the first `noexcept` function or `catch (...)`. So such a thread sleeps until the process
// ends, which is what Python 3.14 does by itself.
#pragma once

#include <Python.h>

#include <chrono>
#include <exception>
#include <stdexcept>
#include <thread>

namespace tokenweir {

[[noreturn]] inline void sleep_for_ever() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

// Never returns if a `catch (...)` has caught the unwinding of a thread that must end, which is no C++ exception.
// `caught` is its `std::current_exception()`.
inline void sleep_if_ending(const std::exception_ptr& caught) {
  if (!caught) sleep_for_ever();
}

// Calls `call`, which takes the lock, or runs Python code that may, and throws no C++ exception.
template <class Call>
auto call_python(Call&& call) noexcept {
  try {
    return call();
  } catch (...) {
    sleep_for_ever();
  }
}

// Releases the lock while it lives.
class GilRelease {
 public:
  GilRelease() noexcept : state_(PyEval_SaveThread()) {}
  GilRelease(const GilRelease&) = delete;
  ~GilRelease() {
    call_python([this] { PyEval_RestoreThread(state_); });
  }

 private:
  PyThreadState* const state_;
};

// Holds the lock while it lives, in any thread.
class GilAcquire {
 public:
  GilAcquire() noexcept : state_(call_python([] { return PyGILState_Ensure(); })) {}
  GilAcquire(const GilAcquire&) = delete;
  ~GilAcquire() { PyGILState_Release(state_); }

 private:
  const PyGILState_STATE state_;
};

// Throws in a subinterpreter, where taking the lock may wait for ever (PyGILState), and which numpy does not support
// either. A module that throws so while it is imported raises ImportError.
inline void refuse_subinterpreter() {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0)
    throw std::runtime_error("tokenweir cannot be used in a subinterpreter: import it in the main interpreter");
}

}  // namespace tokenweir
