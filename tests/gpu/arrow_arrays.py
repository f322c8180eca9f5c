"""Arrow arrays without a library: the structs of Arrow's C data interface, made by ctypes. They may be malformed."""

from __future__ import annotations

import ctypes

import numpy as np

Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


class Stream(ctypes.Structure):
    pass


GetSchema = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Schema))
GetNext = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Array))
LastError = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)

Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.c_void_p),
    ("dictionary", ctypes.c_void_p),
    ("release", Release),
    ("private_data", ctypes.c_void_p),
]
Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.c_void_p),
    ("dictionary", ctypes.c_void_p),
    ("release", Release),
    ("private_data", ctypes.c_void_p),
]
Stream._fields_ = [
    ("get_schema", GetSchema),
    ("get_next", GetNext),
    ("get_last_error", LastError),
    ("release", Release),
    ("private_data", ctypes.c_void_p),
]


class DeviceArray(ctypes.Structure):
    _fields_ = [
        ("array", Array),
        ("device_id", ctypes.c_int64),
        ("device_type", ctypes.c_int32),
        ("sync_event", ctypes.POINTER(ctypes.c_void_p)),
        ("reserved", ctypes.c_int64 * 3),
    ]


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class ArrowArray:
    """One Arrow array, exported by `__arrow_c_array__`.

    Attributes:
        released: How often its consumer has released it.

    """

    def __init__(self, format, length, buffers, *, offset=0, null_count=0, dictionary=False):
        """Create an array of buffers, each as bytes or None. `format` and the others are fields of Arrow's C structs."""
        self.released = 0
        self._kept = [None if data is None else np.frombuffer(data or b"\0", np.uint8) for data in buffers]
        addresses = [None if data is None else data.ctypes.data for data in self._kept]
        self._buffers = (ctypes.c_void_p * len(buffers))(*addresses)
        self._release_array, self._release_schema = Release(self._count), Release(lambda _: None)
        self.schema = Schema(format.encode(), None, None, 0, 0, None, None, self._release_schema, None)
        if dictionary:
            self._dictionary = Schema(b"u", None, None, 0, 0, None, None, self._release_schema, None)
            self.schema.dictionary = ctypes.addressof(self._dictionary)
        self.array = Array(
            length, null_count, offset, len(buffers), 0, self._buffers, None, None, self._release_array, None
        )

    def put_on(self, device):
        """Copy the buffers to a device; return the array, which is changed."""
        with device.use():
            copies = {i: device.to_device(data) for i, data in enumerate(self._kept) if data is not None}
            device.synchronize()
            return self._take(copies, {i: device.address(copy) for i, copy in copies.items()})

    def put_in_managed_memory(self):
        """Copy the buffers to CUDA's managed memory; return the array, which is changed. It needs a GPU."""
        from cupy.cuda import malloc_managed

        copies = {i: malloc_managed(data.nbytes) for i, data in enumerate(self._kept) if data is not None}
        for i, copy in copies.items():
            ctypes.memmove(copy.ptr, self._kept[i].ctypes.data, self._kept[i].nbytes)
        return self._take(copies, {i: copy.ptr for i, copy in copies.items()})

    def _take(self, copies, addresses):
        self._copies = copies
        for i, address in addresses.items():
            self._buffers[i] = address
        return self

    def _count(self, _):
        self.released += 1

    def __arrow_c_array__(self, requested_schema=None):
        return (
            _new_capsule(ctypes.addressof(self.schema), b"arrow_schema", None),
            _new_capsule(ctypes.addressof(self.array), b"arrow_array", None),
        )


class ArrowOnDevice:
    """An array that claims to be in a device's memory, and is exported by Arrow's device interface only."""

    def __init__(self, array, device, event=None):
        """Wrap an `ArrowArray`; `device` is the device's (type, number), and `event` the handle of an event or None."""
        self._array = array
        self._event = ctypes.pointer(ctypes.c_void_p(event)) if event else None
        self._struct = DeviceArray(array.array, device[1], device[0], self._event)

    def __arrow_c_device_array__(self, requested_schema=None, **_):
        return (
            _new_capsule(ctypes.addressof(self._array.schema), b"arrow_schema", None),
            _new_capsule(ctypes.addressof(self._struct), b"arrow_device_array", None),
        )


class ArrowStream:
    """An Arrow stream of arrays, which ends with an error if one is given."""

    def __init__(self, arrays, error=None):
        self._arrays, self._left, self._error = arrays, list(arrays), error and ctypes.create_string_buffer(error)
        callbacks = GetSchema(self._get_schema), GetNext(self._get_next), LastError(self._last_error)
        self._stream = Stream(*callbacks, Release(lambda _: None), None)

    def _get_schema(self, _, out):
        ctypes.memmove(out, ctypes.byref(self._arrays[0].schema), ctypes.sizeof(Schema))
        return 0

    def _get_next(self, _, out):
        if self._left:
            ctypes.memmove(out, ctypes.byref(self._left.pop(0).array), ctypes.sizeof(Array))
            return 0
        out.contents.release = Release()
        return 5 if self._error else 0

    def _last_error(self, _):
        return ctypes.addressof(self._error)

    def __arrow_c_stream__(self, requested_schema=None):
        return _new_capsule(ctypes.addressof(self._stream), b"arrow_array_stream", None)


def string_array(texts, format="u", **options):
    """Return an array of `str` or `bytes` in the string layout of an Arrow format, such as "u" or "vu"."""
    data = [text.encode() if isinstance(text, str) else text for text in texts]
    if format[0] != "v":
        offsets = np.cumsum([0, *map(len, data)], dtype=np.int64 if format in "UZ" else np.int32)
        return ArrowArray(format, len(data), [None, offsets.tobytes(), b"".join(data)], **options)
    heaps, views = [b"", b""], []  # of two buffers, so that their numbers count
    for i, text in enumerate(data):
        if len(text) <= 12:
            views.append(np.int32(len(text)).tobytes() + text.ljust(12, b"\0"))
        else:
            place = np.array([i % 2, len(heaps[i % 2])], np.int32).tobytes()
            views.append(np.int32(len(text)).tobytes() + text[:4] + place)
            heaps[i % 2] += text
    sizes = np.array(list(map(len, heaps)), np.int64).tobytes()
    return ArrowArray(format, len(data), [None, b"".join(views), *heaps, sizes], **options)
