"""Salts: each client has its own in an engine's prefix cache, and none chooses it."""

import pytest
from engine_doubles import DOUBLES, running
from serving import Script, http_of, serving

from tokenweir.stream.engines.no_engine import NoEngine
from tokenweir.stream.engines.sglang import SglangEngine
from tokenweir.stream.engines.vllm import VllmEngine
from tokenweir.stream.serve.answers.cache_salt import SECRET_BYTES, SECRET_FILE, installation_secret, make_secret


async def ask(server, key, **more):
    async with http_of(server, key=key) as client:
        body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2} | more
        return await client.post("/v1/chat/completions", json=body)


@pytest.mark.parametrize(
    ("double", "kind", "field"),
    [
        ("vllm generate", VllmEngine, "cache_salt"),
        ("vllm completions", VllmEngine, "cache_salt"),
        ("sglang cumulative", SglangEngine, "extra_key"),
    ],
)
async def test_each_client_has_a_salt_of_its_own(double, kind, field):
    with running(DOUBLES[double]) as engine:
        for _ in range(2):  # a restarted server, or another one
            async with serving(kind(engine.url), api_key=["one", "two"]) as server:
                for key in ("one", "two", "one"):
                    await ask(server, key)  # the double's arithmetic has no answer to a prompt, but got it
        salts = [body[field] for path, body in engine.requests if path in engine.routes]
    assert len(salts) == 6
    assert salts[0] == salts[2] != salts[1]
    assert salts[:3] == salts[3:]
    assert all(len(salt) == 64 and int(salt, 16) for salt in salts)


async def test_a_client_cannot_choose_its_salt():
    with running(DOUBLES["vllm generate"]) as engine:
        async with serving(VllmEngine(engine.url), api_key=["one", "two"]) as server:
            await ask(server, "one")
            reply = await ask(server, "two", cache_salt=engine.requests[-1][1]["cache_salt"])
        salts = {body["cache_salt"] for path, body in engine.requests}
    assert reply.status_code == 400 or len(salts) == 2


async def rendered(server, key, path="chat/completions", **more):
    body = {"messages": [{"role": "user", "content": "Hi"}], "prompt": "Hi", "input": "Hi", "max_tokens": 2}
    names = {"completions": ("prompt", "max_tokens"), "responses": ("input",)}.get(path, ("messages", "max_tokens"))
    async with http_of(server, key=key) as client:
        asked = {name: body[name] for name in names} | {"model": "default"} | more
        reply = await client.post(f"/v1/{path}/render", json=asked)
    made = reply.json()
    return (made[0] if isinstance(made, list) else made).get("cache_salt")


@pytest.mark.parametrize("path", ["chat/completions", "completions", "responses", "messages"])
async def test_a_rendered_request_has_the_salt_of_its_client(path):
    salts = []
    for _ in range(2):  # a restarted server, or another one
        async with serving(NoEngine(), api_key=["one", "two"]) as server:
            salts += [await rendered(server, key, path) for key in ("one", "two", "one")]
            salts += [await rendered(server, key, path, cache_salt="team") for key in ("one", "two", "one")]
            salts += [await rendered(server, "two", path, cache_salt=each) for each in (salts[0], salts[3])]
    first, second = salts[:8], salts[8:]
    assert first == second
    assert first[0] == first[2] and first[3] == first[5]
    assert len(set(first)) == 6  # what a client asks for divides its own prompts, and is never another client's
    assert all(len(salt) == 64 and int(salt, 16) for salt in first)


async def test_a_rendered_request_has_the_salt_that_the_server_s_own_engine_gets():
    with running(DOUBLES["vllm generate"]) as engine:
        async with serving(VllmEngine(engine.url), api_key=["one", "two"]) as server:
            await ask(server, "two")
            salt = await rendered(server, "two")
    assert {body["cache_salt"] for path, body in engine.requests if path in engine.routes} == {salt}


async def test_clients_share_the_engine_s_cache_where_the_server_says_so():
    engine = NoEngine()
    engine.cache_salt = None
    async with serving(engine, api_key=["one", "two"]) as server:
        salts = [await rendered(server, key, **more) for key in ("one", "two") for more in ({}, {"cache_salt": "a"})]
    assert salts[0] is salts[2] is None
    assert len({*salts, "a"}) == 4


async def test_an_engine_that_takes_no_salt_gets_none():
    engine = Script("ok")
    async with serving(engine) as server:
        await ask(server, "any")
    assert engine.sampling.extra == {}


async def test_a_salt_that_is_no_name_is_refused():
    engine = Script("ok")
    engine.cache_salt = 5
    with pytest.raises(TypeError, match=r"^engine.cache_salt must be a key of Sampling.extra or None, not 5$"):
        async with serving(engine):
            pass


async def test_salts_depend_on_the_keys_and_on_a_secret():
    secrets = {make_secret(keys, secret) for keys in (["a"], ["b"], ["a", "b"], ["ab"], []) for secret in (b"1", b"2")}
    assert len(secrets) == 10
    assert make_secret(["a"], b"1") == make_secret(["a"], b"1")


async def test_a_salt_reveals_no_key_to_who_knows_the_program(cache):
    """Its only secret were the keys, so that one client could guess another's by its own salt."""
    salts = []
    for _ in range(2):
        (cache / SECRET_FILE).unlink(missing_ok=True)
        async with serving(NoEngine(), api_key=["one", "two"]) as server:
            salts.append(await rendered(server, "one"))
    assert salts[0] != salts[1]


async def test_the_secret_of_an_installation_outlives_restarts(cache):
    first = installation_secret()
    assert installation_secret() == first and len(first) == SECRET_BYTES
    assert (cache / SECRET_FILE).stat().st_mode & 0o777 == 0o600
    (cache / SECRET_FILE).write_bytes(b"short")
    second = installation_secret()
    assert second != first and installation_secret() == second
    (cache / SECRET_FILE).chmod(0o666)  # others may have written it
    assert installation_secret() != second


async def test_a_folder_that_cannot_be_written_costs_the_memory_only(cache):
    cache.write_bytes(b"a file")
    assert installation_secret() != installation_secret()


async def test_replicas_share_a_secret(cache):
    salts = []
    for secret in ("s" * 16, "s" * 16, "t" * 16):
        (cache / SECRET_FILE).unlink(missing_ok=True)  # on another machine
        async with serving(NoEngine(), api_key="one", salt_secret=secret) as server:
            salts.append(await rendered(server, "one"))
    assert salts[0] == salts[1] != salts[2]
    with pytest.raises(ValueError, match=r"^salt_secret has 15 characters; at least 16 are needed$"):
        async with serving(NoEngine(), salt_secret="s" * 15):
            pass
