"""What a server runs under: asyncio, on either event loop."""

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
    """What the tests marked `anyio` run under."""
    return request.param
