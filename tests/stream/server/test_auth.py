"""Who may connect: origins and keys."""

import pytest

from tokenweir.stream.server.auth import key_accepted, key_offered, origin_allowed


@pytest.mark.parametrize(
    ("origin", "host", "allowed"),
    [
        (None, "127.0.0.1:8000", True),  # no browser
        ("http://127.0.0.1:8000", "127.0.0.1:8000", True),  # our own page
        ("http://localhost:8000", "localhost:8000", True),
        ("http://LOCALHOST:8000", "localhost:8000", True),
        ("http://[::1]:8000", "[::1]:8000", True),
        ("https://192.168.1.7", "192.168.1.7", True),
        ("http://box.example:8000", "box.example:8000", True),  # the name that the server listens on
        ("https://chat.example", "127.0.0.1:8000", True),  # in the list
        ("https://evil.example", "127.0.0.1:8000", False),
        ("http://127.0.0.1:9000", "127.0.0.1:8000", False),  # another server of the same machine
        ("http://127.0.0.1:8000", "localhost:8000", False),
        ("http://evil.example:8000", "evil.example:8000", False),  # a name rebound to 127.0.0.1
        ("http://127.0.0.1.evil.example:8000", "127.0.0.1.evil.example:8000", False),
        ("https://chat.example.evil.example", "127.0.0.1:8000", False),
        ("null", "127.0.0.1:8000", False),  # a sandboxed frame or a file
        ("http://127.0.0.1:8000, http://evil.example", "127.0.0.1:8000", False),
        ("http://127.0.0.1:8000", None, False),
        ("", "", False),
        ("http://[", "127.0.0.1:8000", False),
    ],
)
def test_origins(origin, host, allowed):
    assert origin_allowed(origin, host, origins=["https://chat.example"], own_name="box.example") is allowed


@pytest.mark.parametrize(
    ("authorization", "subprotocols", "key"),
    [
        (None, [], None),
        ("Bearer k", [], "k"),
        ("bearer  k", [], "k"),
        ("Basic k", [], None),
        ("Bearer", [], ""),
        (None, ["realtime", "openai-insecure-api-key.k"], "k"),
        ("Bearer k", ["openai-insecure-api-key.other"], "k"),
    ],
)
def test_where_the_key_stands(authorization, subprotocols, key):
    assert key_offered(authorization, subprotocols) == key


@pytest.mark.parametrize(
    ("offered", "expected", "accepted"),
    [(None, None, True), ("k", None, True), ("k", "k", True), (None, "k", False), ("", "k", False), ("kk", "k", False)]
    + [("clé", "clé", True), ("clé", "cle", False)],
)
def test_keys(offered, expected, accepted):
    assert key_accepted(offered, expected) is accepted
