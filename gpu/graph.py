"""CUDA graphs, through CuPy: kernel launches that are recorded once and then launched as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from numpy.typing import NDArray

T = TypeVar("T")


class CudaGraph(Generic[T]):
    """A CUDA graph, as a `Recording` of `tokenweir.gpu.device`.

    While a stream is captured, nothing may wait for it, and CuPy refuses copies from and to the host. So the host array
    is copied before each launch. Memory comes from a private pool, so that memory which the work frees stays the
    graph's.
    """

    def __init__(self, cupy: Any, host: NDArray[Any], work: Callable[[Any], T]) -> None:
        """Record the kernel launches of `work` on CuPy's current device; `host` and `work` are as for `Device.record`."""
        self._cuda, self._host = cupy.cuda, host
        self._pool = self._cuda.MemoryPool()
        self._released = self._cuda.Event(disable_timing=True)
        stream = self._cuda.Stream(non_blocking=True)
        with self._cuda.using_allocator(self._pool.malloc), stream:
            self._input = cupy.empty(host.size, host.dtype)
            self._input.set(host, stream=stream)
            work(self._input)  # loads kernels, and fills the pool, since a capture cannot allocate from the driver
            stream.synchronize()
            stream.begin_capture()
            try:
                self._result = work(self._input)
            finally:
                self._graph = stream.end_capture()

    @contextmanager
    def replay(self) -> Iterator[T]:
        """Run the recorded work on CuPy's current stream, with the present content of the host array; yield its result.

        It waits for earlier uses of the result on other streams. The next replay overwrites the result.
        """
        stream = self._cuda.get_current_stream()
        stream.wait_event(self._released)
        self._input.set(self._host, stream=stream)
        self._graph.launch(stream)
        yield self._result
        self._released.record(stream)
