"""Client events: what is understood, and what is refused in which words."""

import json
import re

import pytest
from case_tables import cases
from hypothesis import example, given
from hypothesis import strategies as st

from tokenweir.encode.errors import ProtocolError
from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.serve.wire.responses.requests import (
    RequestError,
    ResponseCancel,
    ResponseCreate,
    ResponseResume,
    parse_event,
)
from tokenweir.stream.serve.wire.shared.checking import MOST_CONTAINERS, MOST_FLOATS, MOST_STRINGS, parse_object

CASES = cases(__file__)

TOOLS = CASES["tools"]


def create(**fields):
    return parse_event(json.dumps({"type": "response.create", **fields}))


def refusal(data):
    with pytest.raises(RequestError) as caught:
        parse_event(data if isinstance(data, (str, bytes)) else json.dumps({"type": "response.create", **data}))
    return caught.value.code, caught.value.param, str(caught.value)


def test_a_string_is_one_user_message():
    assert create(input="hi").messages() == [{"role": "user", "content": "hi"}]


def test_messages_may_leave_out_their_type_and_give_parts():
    request = create(
        input=[
            {"role": "developer", "content": "be brief"},
            {"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]},
        ]
    )
    assert request.messages() == [{"role": "system", "content": "be brief"}, {"role": "user", "content": "ab"}]


def test_output_items_can_be_sent_back():
    request = create(input=CASES["output_items_can_be_sent_back"])
    assert request.messages() == [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "a", "reasoning_content": "hm"},
    ]


@pytest.mark.parametrize("after", [[], [{"role": "user", "content": "go on"}]])
def test_thinking_that_no_answer_followed_is_kept(after):
    thinking = {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}]}
    messages = create(input=[{"role": "user", "content": "q"}, thinking, *after]).messages()
    assert messages[1] == {"role": "assistant", "content": "", "reasoning_content": "hm"}
    assert messages[2:] == after


def test_a_summary_that_comes_back_is_thinking():
    thinking = {"type": "reasoning", "content": [], "summary": [{"type": "summary_text", "text": "hm"}]}
    messages = create(input=[{"role": "user", "content": "q"}, thinking]).messages()
    assert messages[1] == {"role": "assistant", "content": "", "reasoning_content": "hm"}


def test_sampling():
    request = create(input="hi", temperature=0, top_p=0.5, top_k=3, seed=7, stop="END", max_output_tokens=9)
    assert request.sampling(max_tokens=9) == Sampling(
        max_tokens=9, temperature=0, top_p=0.5, top_k=3, seed=7, stop=("END",)
    )
    assert create(input="hi", stop=["a", "b"]).sampling(max_tokens=None).stop == ("a", "b")
    assert create(input="hi").sampling(max_tokens=None) == Sampling()


def test_effort_becomes_template_arguments():
    assert create(input="hi").template_kwargs() == {}
    assert create(input="hi", reasoning={"effort": "none"}).template_kwargs() == {
        "enable_thinking": False,
        "thinking": False,
    }
    assert create(input="hi", reasoning={"effort": "high"}).template_kwargs() == {
        "enable_thinking": True,
        "thinking": True,
        "reasoning_effort": "high",
    }


def test_what_asks_for_nothing_is_accepted():
    neutral = CASES["what_asks_for_nothing"]
    unset = {"temperature": None, "tools": None, "conversation": None}
    assert create(input="hi", **neutral) == create(input="hi", **unset) == create(input="hi")


def test_cancel():
    assert parse_event('{"type":"response.cancel"}') == ResponseCancel("response.cancel")
    assert parse_event('{"type":"response.cancel","response_id":"resp_1"}').response_id == "resp_1"


def test_resume():
    assert parse_event('{"type":"response.resume","response_id":"resp_1"}') == ResponseResume(
        "response.resume", "resp_1"
    )
    event = '{"type":"response.resume","response_id":"resp_1","starting_after":7}'
    assert parse_event(event).starting_after == 7
    with pytest.raises(RequestError, match="response_id is missing"):
        parse_event('{"type":"response.resume"}')


def test_tools_as_chat_templates_take_them():
    bare = {"type": "function", "name": "now"}
    assert create(input="hi", tools=[*TOOLS, bare]).tool_set.definitions() == [
        {
            "type": "function",
            "function": {"name": "weather", "description": "Look outside.", "parameters": TOOLS[0]["parameters"]},
        },
        {
            "type": "function",
            "function": {"name": "now", "description": "", "parameters": {"type": "object", "properties": {}}},
        },
    ]
    for request in (create(tools=[]), create(tool_choice="auto"), create()):
        assert request.tool_set.definitions() is None


def test_reasoning_without_content_says_nothing():
    """Codex sends back the null that stood in the response object; of another provider's thinking only it can read it."""
    said = {"role": "assistant", "content": "yes"}
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": []}
    empty = create(input=[{**reasoning, "encrypted_content": None}, said])
    secret = create(input=[{**reasoning, "encrypted_content": "of another server"}, said])
    assert empty.messages() == secret.messages() == create(input=[said]).messages() == [said]
    assert (empty.left_out, secret.left_out) == ([], ["input[0].encrypted_content"])


@pytest.mark.parametrize("role", ["user", "assistant", "system", "developer"])
@pytest.mark.parametrize("content", [{}, {"content": None}])
def test_a_message_may_have_no_content(role, content):
    said = {"role": "user", "content": "hi"}
    assert (
        create(input=[{"role": role, **content}, said]).messages()
        == create(input=[{"role": role, "content": ""}, said]).messages()
    )


def test_a_refusal_can_be_sent_back():
    refusal = {"type": "refusal", "refusal": "I had rather not."}
    [_, message] = create(
        input=[{"role": "user", "content": "q"}, {"role": "assistant", "content": [refusal]}]
    ).messages()
    assert message == {"role": "assistant", "content": "I had rather not."}


def test_calls_and_what_they_gave_can_be_sent_back():
    request = create(input=CASES["calls_and_what_they_gave"])
    assert request.messages() == CASES["calls_and_what_they_gave_as_messages"]


def test_the_output_of_an_unknown_call_stays_but_is_refused_behind_a_stored_response():
    output = {"type": "function_call_output", "call_id": "b", "output": ""}
    call = {"type": "function_call", "call_id": "b", "name": "f", "arguments": "{}"}
    orphan = create(input=[{"role": "user", "content": "q"}, output]).messages()[1]
    assert orphan == {"role": "tool", "content": "", "tool_call_id": "b"}
    earlier = create(input=[call]).messages()
    with pytest.raises(RequestError, match=r"^input\[0\]: no function_call before it has the call_id 'c'$") as caught:
        create(input=[output | {"call_id": "c"}]).messages(earlier)
    assert caught.value.param == "input[0].call_id"
    assert create(input=[output]).messages(earlier)[-1]["name"] == "f"
    assert len(earlier) == 1


@pytest.mark.parametrize(
    ("data", "code", "param", "text"),
    [
        *CASES["refused_by_name_and_value"],
        (b"\x00\x01", "binary_frame", None, "a binary frame of 2 bytes; events are JSON in text frames"),
        ("[" * 20_000, "too_deep", None, "nested more than 500 deep"),
        ('{"a":' * 501 + "1" + "}" * 501, "too_deep", None, "nested more than 500 deep"),
        ('{"a":' * 500 + "1" + "}" * 500, "unknown_event", "type", "unknown event null"),
        ("[" * 100_000, "too_many_values", None, "more than 65536 arrays and objects"),
        ({"tools": [{"type": "function", "name": "f"}] * 2049}, "too_many_items", "tools", "tools has 2049 items"),
        (
            {"stop": "x" * 1001},
            "invalid_value",
            "stop",
            'stop: Expected `str` of length <= 1000, got "' + "x" * 76 + "...",
        ),
        ({"x" * 1000: 1}, "unsupported_parameter", "x" * 80, "this server does not offer it"),
        ({"foo": "y" * 1000}, "unsupported_parameter", "foo", "y..."),
    ],
)
def test_refused_by_name_and_value(data, code, param, text):
    got_code, got_param, got_text = refusal(data)
    assert (got_code, got_param) == (code, param)
    assert text in got_text
    assert len(got_text) < 400


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
field_names = st.sampled_from([*ResponseCreate.__struct_fields__, "tools", "text", "store"]) | st.text(max_size=6)
items = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["message", "reasoning", "function_call", "function_call_output"]) | json_values,
        "call_id": st.sampled_from(["a", "b"]),
        "name": st.just("f"),
        "arguments": st.text(max_size=5),
        "output": st.just(""),
        "role": st.sampled_from(["user", "assistant"]) | json_values,
        "content": json_values,
        "text": json_values,
    },
)


@given(st.dictionaries(field_names, json_values | st.lists(items, max_size=3), max_size=4))
def test_any_json_is_understood_or_refused(fields):
    try:
        create(**{key: value for key, value in fields.items() if key != "type"}).messages()
    except ProtocolError as error:
        str(error).encode()


@given(st.text() | st.binary())
def test_any_frame_is_understood_or_refused(data):
    with pytest.raises(RequestError):
        parse_event(data)


def test_slow_numbers_are_converted_by_python_and_bounded():
    """msgspec takes 14 µs for 1e300, and so 2 s for a long message of them, during which all streams stop."""
    assert parse_object('{"a": [1e300, -0.5, 1E-7, 2, 1e5]}') == {"a": [1e300, -0.5, 1e-07, 2, 1e5]}
    assert parse_object(b'{"a": [%b]}' % b",".join([b"1e300"] * MOST_FLOATS)) == {"a": [1e300] * MOST_FLOATS}
    with pytest.raises(RequestError, match=f"more than {MOST_FLOATS} numbers with a fraction") as refused:
        parse_object(b'{"a": [%b]}' % b",".join([b"1e300"] * (MOST_FLOATS + 1)))
    assert refused.value.code == "too_many_values"
    with pytest.raises(RequestError, match="out of range") as refused:
        parse_object(b'{"a": [%b, 1e400]}' % (b"0," * 40_000 + b"0"))
    assert refused.value.code == "invalid_json"


def test_strings_are_counted_before_any_is_made():
    text = '"' + '\\"' * (3 * MOST_STRINGS) + '"'  # its quotes begin no string
    empty = ",".join(['""'] * (MOST_STRINGS - 3))
    assert len(parse_object(f'{{"a": {text}, "b": [{empty}]}}')["b"]) == MOST_STRINGS - 3
    with pytest.raises(RequestError, match=f"more than {MOST_STRINGS} strings") as refused:
        parse_object(f'{{"b": [{empty},"","",""], what is not read}}')
    assert refused.value.code == "too_many_values"


pairs = st.lists(
    st.sampled_from(["\\ud83d", "\\ude00", "\\uD83D\\uDE00", "\\\\", "\\\\ud83d", '\\"', "\\u0041", "ud83d", "a", "é"]),
    max_size=12,
)


@given(pairs, st.sampled_from(["", '"}', '"']), st.booleans())
@example(["\\\\"] * 12 + ["\\ud83d"], '"}', True)
@example(["\\\\"] * 12 + ["ud83d"], "", True)
def test_half_a_surrogate_pair_is_named_where_the_parser_stopped(parts, end, is_padded):
    data = '{"a": "' + "b" * 40 * is_padded + "".join(parts) + end
    halves = re.findall(r"\\u[dD][89a-fA-F]..", re.sub(r"\\u[dD]83[dD]\\u[dD][eE]00", "", data.replace("\\\\", "  ")))
    try:
        parse_object(data)
    except RequestError as error:
        assert (error.code == "invalid_unicode") == bool(halves)
        assert error.code in ("invalid_unicode", "invalid_json")
    else:
        assert not halves


@pytest.mark.parametrize("container", ["[]", "{}", '{"a":[]}'])
def test_arrays_and_objects_are_counted_before_any_is_made(container):
    each = container.count("[") + container.count("{")
    data = f'{{"a": "{"[" * 70_000}", "b": [{",".join([container] * ((MOST_CONTAINERS - 2) // each))}]}}'
    assert len(parse_object(data)["b"]) == (MOST_CONTAINERS - 2) // each
    data = f'{{"b": [{",".join([container] * (MOST_CONTAINERS // each))}], what is not read}}'
    with pytest.raises(RequestError, match=f"more than {MOST_CONTAINERS} arrays and objects") as refused:
        parse_object(data)
    assert refused.value.code == "too_many_values"


@pytest.mark.parametrize("text, code", CASES["half_a_pair_is_told_from_other_errors"])
def test_half_a_pair_is_told_from_other_errors(text, code):
    with pytest.raises(RequestError) as refused:
        parse_object(text)
    assert refused.value.code == code
