"""Requests in the schema of SGLang's renderer: its names, its defaults, its ids of requests.

The expected answers are built from the sources and the tests of `rust/sglang-renderer` in SGLang's repository.
"""

import pytest
from case_tables import cases
from derendering import post
from serving import TOK, Script, http_of, serving

from tokenweir.stream.engines.no_engine import NoEngine

CASES = cases(__file__)

HI = [{"role": "user", "content": "hi <|im_end|> there"}]
METADATA = CASES["metadata"]
DEFAULTS = CASES["defaults"]


async def rendered(path, body, engine=None):
    async with serving(engine or NoEngine(4096), render_schema="sglang") as server, http_of(server) as client:
        return await post(client, f"/v1/{path}/render", body)


async def test_a_plain_chat():
    made = await rendered("chat/completions", {"model": "default", "messages": HI, "max_tokens": 9, "rid": "mine"})
    async with serving(Script("Hello")) as server, http_of(server) as client:
        other = await post(client, "/v1/chat/completions/render", {"messages": HI})
    assert len(made.pop("cache_salt")) == 64
    assert made == {
        "rid": "mine",
        "model": "default",
        "input_ids": other["token_ids"],
        "require_reasoning": False,
        "sampling_params": {"max_new_tokens": 9} | DEFAULTS,
        "stream": False,
        "return_logprob": False,
        "logprob_start_len": -1,
        "top_logprobs_num": 0,
        "return_hidden_states": False,
    }


async def test_the_fields_of_a_chat():
    asked = {
        "messages": HI,
        "temperature": 0.5,
        "top_k": -1,
        "seed": 3,
        "stop": "END",
        "min_tokens": 2,
        "logit_bias": {"7": 1.5},
        "logprobs": True,
        "top_logprobs": 2,
        "stop_regex": "E[0-9]",
        "custom_params": {"a": 1},
        "skip_special_tokens": False,
        "include_stop_str_in_output": True,
        "stream": True,
        "return_origins": True,
        **METADATA,
    }
    made = await rendered("chat/completions", asked)
    assert made | METADATA == made
    assert made["rid"].startswith("chatcmpl")
    parameters = made["sampling_params"]
    changed = {name: value for name, value in parameters.items() if value != DEFAULTS.get(name)}
    assert changed.pop("max_new_tokens") == 4096 - len(made["input_ids"])
    assert changed == CASES["the_fields_of_a_chat"]
    assert (made["return_logprob"], made["top_logprobs_num"], made["stream"]) == (True, 2, True)
    span = next(span for span in made["origins"]["spans"] if span.get("role") == "user")
    assert TOK.decode(made["input_ids"][span["start"] : span["end"]]) == HI[0]["content"]


async def test_greedy_decoding_has_sglangs_words():
    made = await rendered("chat/completions", {"messages": HI, "temperature": 0, "top_k": 17})
    assert (made["sampling_params"]["temperature"], made["sampling_params"]["top_k"]) == (1.0, 1)


async def test_completions_have_a_request_for_each_choice_of_each_prompt():
    body = {"model": "default", "prompt": ["one two", "three"], "n": 2, "max_tokens": 5, "rid": "request-id"} | METADATA
    made = await rendered("completions", body)
    texts = [TOK.decode(request["input_ids"]) for request in made]
    assert texts == ["one two", "one two", "three", "three"]
    assert [request["rid"] for request in made] == [f"request-id-{number}" for number in range(4)]
    assert all(request["sampling_params"]["n"] == 1 for request in made)
    assert all(request | METADATA == request for request in made)
    (one,) = await rendered("completions", {"prompt": [5, 6, 7], "rid": "a"})
    assert (one["rid"], one["input_ids"]) == ("a-0", [5, 6, 7])


async def test_constraints_behind_the_thinking():
    format = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
    for thinks_first in (False, True):
        engine = NoEngine(4096, thinks_first=thinks_first)
        made = await rendered("chat/completions", {"messages": HI, "response_format": format}, engine)
        assert made["sampling_params"]["json_schema"] == '{"type":"object"}'
        assert made["require_reasoning"] is thinks_first
        made = await rendered("chat/completions", {"messages": HI}, engine)
        assert made["require_reasoning"] is False


async def test_responses_and_messages_have_the_same_schema():
    made = await rendered("responses", {"input": "hi", "max_output_tokens": 3})
    assert (made["sampling_params"]["max_new_tokens"], made["rid"][:4]) == (3, "resp")
    made = await rendered("messages", {"model": "default", "messages": HI, "max_tokens": 4})
    assert (made["sampling_params"]["max_new_tokens"], made["rid"][:3]) == (4, "msg")


@pytest.mark.parametrize(
    ("body", "param"),
    [({"n": 2}, "n"), ({"session_id": "s"}, "session_id"), ({"kv_transfer_params": {}}, "kv_transfer_params")],
)
async def test_what_sglangs_renderer_refuses_is_refused(body, param):
    async with serving(NoEngine(4096), render_schema="sglang") as server, http_of(server) as client:
        refused = await client.post("/v1/chat/completions/render", json={"messages": HI} | body)
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, param)


async def test_media_are_refused():
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    async with serving(NoEngine(4096), render_schema="sglang") as server, http_of(server) as client:
        message = {"role": "user", "content": [image, {"type": "text", "text": "?"}]}
        refused = await client.post("/v1/chat/completions/render", json={"messages": [message]})
        assert refused.status_code == 400
