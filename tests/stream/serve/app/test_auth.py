"""Access control: origins and keys."""

import hashlib
import hmac

import pytest

from tokenweir.stream.serve.app import auth
from tokenweir.stream.serve.app.auth import Gate, key_offered


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
    gate = Gate(origins=["https://chat.example"], own_name="box.example")
    assert gate.origin_allowed(origin, host) is allowed


@pytest.mark.parametrize(
    ("options", "allowed", "refused"),
    [
        (
            {},
            [None, "127.0.0.1:8000", "[::1]", "localhost", "LOCALHOST:1", "box.example:80"],
            ["evil.example", "", "[", "localhost, evil.example", "evil@localhost"],
        ),
        ({"hosts": ["api.example"]}, ["api.example:443", "API.example", "10.0.0.1"], ["evil.example", "x.api.example"]),
        ({"hosts": ["*"]}, ["evil.example"], []),
        ({"keys": ["k"]}, ["api.example"], []),  # what has no key learns nothing
        ({"keys": ["k"], "hosts": ["api.example"]}, ["api.example"], ["evil.example"]),
    ],
)
def test_hosts(options, allowed, refused):
    gate = Gate(own_name="Box.example", **options)
    assert all(gate.host_allowed(host) for host in allowed)
    assert not any(gate.host_allowed(host) for host in refused)


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


def test_several_keys():
    gate = Gate(keys=["one", "two"])
    assert [gate.key_index(key) for key in ("one", "two", "on", "", None, "clé")] == [0, 1, None, None, None, None]
    assert gate.has_keys and not Gate().has_keys


@pytest.mark.parametrize("option", ["hosts", "origins"])
def test_one_text_in_place_of_several_is_refused(option):
    with pytest.raises(
        TypeError, match=rf"^{option} must be several texts, not one str: write {option}=\['\*\.example'\]$"
    ):
        Gate(**{option: "*.example"})


@pytest.mark.parametrize("option", ["origins", "hosts"])
@pytest.mark.parametrize(
    ("given", "message"), [(5, " must be several texts, not int"), (["a", 5], r"\[1\] must be str, not int")]
)
def test_what_is_no_text_is_refused(option, given, message):
    with pytest.raises(TypeError, match=f"^{option}{message}$"):
        Gate(**{option: given})


@pytest.mark.parametrize("keys", [[""], ["clé"], ["good", ""]])
def test_keys_that_cannot_be(keys):
    with pytest.raises(ValueError, match="^api_key must be ASCII and not empty"):
        Gate(keys=keys)


class Counted:
    """Counts the bytes of each comparison and each hash that a check of keys makes."""

    def __init__(self, monkeypatch):
        self.work = []

        def compare(a, b, compare=hmac.compare_digest):
            self.work.append(("compared", len(b)))  # CPython goes through all of the second one
            return compare(a, b)

        def hashed(data, hashed=hashlib.blake2b, **options):
            self.work.append(("hashed", len(data)))
            return hashed(data, **options)

        monkeypatch.setattr(hmac, "compare_digest", compare)
        monkeypatch.setattr(auth, "blake2b", hashed, raising=False)

    def of(self, gate, offered):
        self.work.clear()
        gate.key_index(offered)
        return list(self.work)


def test_the_work_of_a_check_tells_nothing_of_the_keys(monkeypatch):
    counted = Counted(monkeypatch)
    gates = [Gate(keys=keys) for keys in (["secret"], ["s"], ["x" * 1000], ["a", "bb", "secret", "c" * 99], ["secreT"])]
    for offered in ("secret", "s", "", "x" * 1000, "secreT"):
        work = [counted.of(gate, offered) for gate in gates]
        assert work[0] and all(each == work[0] for each in work)


def test_the_first_of_equal_keys_counts():
    assert Gate(keys=["one", "two", "one"]).key_index("one") == 0
