"""Work on a CUDA device that is recorded once and then launched as a whole: a CUDA graph, through CuPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from numpy.typing import NDArray

T = TypeVar("T")


class CudaGraph(Generic[T]):
    """A `Recording` of `tokenweir.gpu.device`.

    While a stream is captured, nothing may wait for it, and CuPy refuses to copy from the host and to it. So the copy of the
    host array is made before each launch. Memory comes from a pool that nobody else has: what the work takes and gives back
    stays the graph's.
    """

    def __init__(self, cupy: Any, host: NDArray[Any], work: Callable[[Any], T]) -> None:
        """See `Device.record`; the device is CuPy's current one."""
        self._cuda, self._host = cupy.cuda, host
        self._pool = self._cuda.MemoryPool()
        self._released = self._cuda.Event(disable_timing=True)
        stream = self._cuda.Stream(non_blocking=True)
        with self._cuda.using_allocator(self._pool.malloc), stream:
            self._input = cupy.empty(host.size, host.dtype)
            self._input.set(host, stream=stream)
            work(self._input)  # loads kernels, and takes from the driver the memory that the capture finds in the pool
            stream.synchronize()
            stream.begin_capture()
            try:
                self._result = work(self._input)
            finally:
                self._graph = stream.end_capture()

    @contextmanager
    def again(self) -> Iterator[T]:
        """See `Recording`; on CuPy's current stream, after what used the arrays on another one."""
        stream = self._cuda.get_current_stream()
        stream.wait_event(self._released)
        self._input.set(self._host, stream=stream)
        self._graph.launch(stream)
        yield self._result
        self._released.record(stream)
