"""Random conversations, by Hypothesis: texts that templates look at, odd fields, calls and tools of any nesting."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

_SEEN = (
    "<think>",
    "</think>",
    "\n",
    " ",
    "<|im_end|>",
    "/no_think",
    "<tool_response>",
    "</tool_response>",
    "{{",
    "é",
    "😀",
)
_WORDS = (
    *_SEEN,
    "a",
    "B",
    "ß",
    "x<y",
    '"',
    "\\",
    "'",
    "&",
    "\t",
    "\u2028",
    "\u00a0",
    "[INST]",
    "</s>",
    "1",
    ".",
    "\r\n",
)
texts: SearchStrategy[str] = st.one_of(
    st.lists(st.sampled_from(_WORDS), max_size=8).map("".join),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=12),
)
_scalars = st.one_of(texts, st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none())
_keys = st.one_of(st.sampled_from(("type", "items", "properties", "description", "get", "a b", "")), texts)
values: SearchStrategy[Any] = st.recursive(
    _scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_keys, inner, max_size=3)),
    max_leaves=6,
)
_schemas: SearchStrategy[Any] = st.recursive(
    st.fixed_dictionaries(
        {"type": st.sampled_from(("string", "integer", "number", "boolean", "null"))}, optional={"description": texts}
    ),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(texts, inner, max_size=2)},
            optional={"required": st.lists(texts, max_size=2)},
        ),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=2)}),
        st.fixed_dictionaries({"enum": st.lists(_scalars, min_size=1, max_size=3), "default": values}),
    ),
    max_leaves=4,
)
_properties = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(texts, _schemas, max_size=2)}
)
_tools = st.fixed_dictionaries(
    {
        "type": st.just("function"),
        "function": st.fixed_dictionaries({"name": texts, "description": texts, "parameters": _properties}),
    }
)
_parts = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": texts}),
    st.just({"type": "image"}),
    st.just({"type": "image_url"}),
)
contents = st.one_of(texts, texts, texts, st.lists(_parts, max_size=3), st.none())


@st.composite
def conversations(draw: DrawFn) -> dict[str, Any]:
    """Draw the variables of a chat template: messages, tools and options."""
    messages: list[dict[str, Any]] = []
    if draw(st.booleans()):
        messages.append({"role": draw(st.sampled_from(("system", "developer"))), "content": draw(contents)})
    for _ in range(draw(st.integers(1, 3))):
        messages.append({"role": "user", "content": draw(contents)})
        answer: dict[str, Any] = {"role": "assistant", "content": draw(contents)}
        for field in ("reasoning_content", "thinking", "reasoning"):
            if draw(st.integers(0, 3)) == 0:
                answer[field] = draw(texts)
        messages.append(answer)
        if draw(st.booleans()):
            calls = []
            for number in range(draw(st.integers(1, 2))):
                arguments = draw(st.one_of(st.dictionaries(_keys, values, max_size=3), texts))
                function = {"name": draw(texts), "arguments": arguments}
                calls.append({"id": f"call{number:05d}", "type": "function", "function": function})
                messages.append(
                    {"role": "tool", "name": "f", "tool_call_id": f"call{number:05d}", "content": draw(contents)}
                )
            answer["tool_calls"] = calls
            messages.append({"role": "assistant", "content": draw(texts)})
    if draw(st.booleans()):
        messages.append({"role": "user", "content": draw(contents)})
    variables: dict[str, Any] = {"messages": messages, "bos_token": "<s>", "eos_token": "</s>"}
    variables["add_generation_prompt"] = draw(st.booleans())
    if draw(st.booleans()):
        variables["tools"] = draw(st.lists(_tools, max_size=2))
    for switch in ("enable_thinking", "thinking", "clear_thinking"):
        if draw(st.integers(0, 3)) == 0:
            variables[switch] = draw(st.booleans())
    return variables
