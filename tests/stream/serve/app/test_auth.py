"""Access control: origins and keys."""

import hashlib
import hmac

import pytest
from case_tables import cases

from tokenweir.stream.serve.app import auth
from tokenweir.stream.serve.app.auth import Gate, key_offered

CASES = cases(__file__)


@pytest.mark.parametrize(("origin", "host", "allowed"), CASES["origins"])
def test_origins(origin, host, allowed):
    gate = Gate(origins=["https://chat.example"], own_name="box.example")
    assert gate.origin_allowed(origin, host) is allowed


@pytest.mark.parametrize(("options", "allowed", "refused"), CASES["hosts"])
def test_hosts(options, allowed, refused):
    gate = Gate(own_name="Box.example", **options)
    assert all(gate.host_allowed(host) for host in allowed)
    assert not any(gate.host_allowed(host) for host in refused)


@pytest.mark.parametrize(("authorization", "subprotocols", "key"), CASES["where_the_key_stands"])
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
