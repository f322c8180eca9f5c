"""Event loops of servers: asyncio, in both implementations."""

from importlib.util import find_spec

import pytest

UVLOOP = pytest.mark.skipif(find_spec("uvloop") is None, reason="uvloop is not installed")


@pytest.fixture(
    params=[
        pytest.param(("asyncio", {"use_uvloop": False}), id="asyncio"),
        pytest.param(("asyncio", {"use_uvloop": True}), id="asyncio+uvloop", marks=UVLOOP),
    ]
)
def anyio_backend(request):
    """Event loops for the tests marked `anyio`."""
    return request.param
