"""Answers and options to draw: of all styles, with markup and stops whole, cut and mixed up."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import strategies as st
from msgspec.structs import replace

from tokenweir.encode.spec import AddedToken
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.decode.options import SCOPES
from tokenweir.stream.events.deltas import Channel, ReasoningDelta, TextDelta, ToolCallDelta
from tokenweir.stream.events.merge import merge
from tokenweir.templates.styles.reasoning import HARMONY, INKLING, MESSAGES, MUSE, STYLES
from tokenweir.templates.styles.tools import TOOL_STYLES


class DrawnOptions(dict):
    """Options of a decoder, with the style of the answer's thinking as `style`, since the options may leave it out."""

    def __init__(self, style):
        self.style = style


WORDS = ["\n", " ", "Hello", " world", "é", "👩‍👩", "日本", "User", ":", "boxes", "x", ".\n"]
STOPS = ["\n\n", "ox", "User:", "x", "\nH", "本", "es é", ".", "👩"]
JSON = [
    *(
        '{"type": "x", "function": {"name": "f", "arguments": {}}}',
        '{"name": "f", "arguments": {"a": [1, "é\\n"]}}',
        '{"arguments": {}, "name": "g"}',
        '{"name": "f", "arguments": {',
    ),
    *('{"tool_name": "f", "parameters": {"x": null}}', '{"a": 1}', '{"a": "Hello', '"}', "{}", "[", "]", ",", "}", "f"),
]
HEADERS = {
    "deepseek": "function<｜tool▁sep｜>f\n```json\n",
    "kimi-k2": "functions.f:0<|tool_call_argument_begin|>",
    "plamo3": (
        "<|plamo:begin_tool_name:plamo|>f<|plamo:end_tool_name:plamo|>"
        "<|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>"
    ),
    "mistral": "f[CALL_ID]a1[ARGS]",
    "functionary": "f>",
    "functionary-v3.2": "f\n",
    "yandexgpt": "f\n",
    "step-audio-2": "f\n",
    "mirothinker": "it</server_name>\n<tool_name>f</tool_name>\n<arguments>\n",
    "solar-open": "id-0<|tool_call:name|>f<|tool_call:args|>",
}
MESSAGE_TOKENS = [set(STYLES[name].tokens) for name in MESSAGES]
"""With these, headers are no text even where thinking stays in the answer: test_detection.py shows that."""

MESSAGE_TEXTS = {
    HARMONY: [
        *("<|channel|>analysis<|message|>", "<|start|>assistant<|channel|>final<|message|>", "<|end|>", "<|call|>"),
        *(
            '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": 1}',
            "<|start|>assistant to=f",
            "<|message|>",
        ),
    ],
    INKLING: [
        *("<|message_model|><|content_thinking|>", "<|message_model|><|content_text|>", "<|end_message|>"),
        '<|message_model|>f<|content_invoke_tool_json|>{"name": "f", "args": {"a": 1}}',
    ],
    MUSE: [
        *("<|start|>assistant to=self<|message|>", "<|start|>assistant to=user<|message|>", "<|eom|>", "<|eot|>"),
        '<|start|>assistant to=f<|message|><atem:function_calls><atem:invoke name="f">',
    ],
}


@st.composite
def answers(draw, make_tok):
    """Draw a tokenizer, the ids of an answer, and options.

    Markup and stops are whole, cut and mixed up, as ids or as bytes.
    """
    style, tools = draw(st.sampled_from(list(STYLES.values()))), draw(st.sampled_from(list(TOOL_STYLES.values())))
    special = draw(st.sampled_from([None, True, False]))
    tokens = dict.fromkeys((*style.tokens, *tools.tokens) if special is not None else ())
    tok = make_tok(*(AddedToken(token, special=special) for token in tokens))
    marks = [mark for mark in dict.fromkeys((*style.marks, *style.enders, *style.token_enders, *tools.marks)) if mark]
    tag = style.openers[0]
    stops = draw(
        st.lists(
            st.sampled_from([*STOPS, tag[:2], style.closers[0][1:], tag + "x", '"', "<skip>", "x<skip>H"]), max_size=3
        )
    )
    messages = [text for name in {style.name, tools.name} & set(MESSAGES) for text in MESSAGE_TEXTS[name]]
    texts = [*WORDS, *stops, *marks, *(mark[:-1] for mark in marks), *(mark[1:] for mark in marks), *JSON, *messages]
    header = HEADERS.get(tools.name, "")
    for call in JSON[:5]:
        opened = tools.opens[0] + tools.call_opens + draw(st.sampled_from([header, ""]))
        texts += [
            opened + call + "".join(tools.tails) + tools.call_closes + tools.closes,
            opened + call[:-2],
            header + call,
        ]
    thought = [f"\n{opener}hm{closer}" for opener in style.openers for closer in style.closers] + [tag, f"\n{tag}"]
    ids = []
    for text in draw(
        st.lists(st.sampled_from(thought) | st.sampled_from(texts) | st.sampled_from(texts[-16:]), max_size=9)
    ):
        ids += draw(st.sampled_from([tok.encode(text), list(text.encode())]))
        ids += draw(st.just([]) | st.lists(st.integers(0, tok.vocab_size - 1), max_size=2))
    headed = any(tokens.keys() >= of for of in MESSAGE_TOKENS)
    least = draw(st.integers(0, 6))
    options = DrawnOptions(style)
    options |= {
        "stop": stops,
        "stop_scope": draw(st.sampled_from(list(SCOPES))),
        "reasoning": draw(st.sampled_from([style, style, replace(style, strip=True), style if headed else None])),
        "tool_style": draw(st.sampled_from([tools, tools, None])),
        "tools": draw(st.sampled_from([[], [], [{"name": "f"}], [{"name": "g"}]])),
        "min_tokens": least,
        "max_tokens": draw(st.none() | st.none() | st.integers(least, 60)),
        "include_stop": draw(st.booleans()),
        "ignore_eos": draw(st.booleans()),
        "stop_token_ids": draw(st.sampled_from([(), (), (65,), (260,)])),
        "skip_special_tokens": draw(st.booleans()),
        "prompt_ids": draw(st.sampled_from([[], [65, 0xF0], list(f"<skip>{tag}".encode()), tok.encode(tag)])),
    }
    return tok, ids, options


def is_stripped(options):
    return options["reasoning"] is not None and options["reasoning"].strip


def style_in(options):
    return None if options["reasoning"] is None else options.style


def cut(ids, places):
    places = sorted({0, len(ids), *(place % (len(ids) + 1) for place in places)})
    return [ids[a:b] for a, b in pairwise(places)]


class SlowPath(ChatDecoder):
    """`ChatDecoder` whose fast path is switched off."""

    def _adjust_fast_path(self):
        super()._adjust_fast_path()
        self._fast.close()


CUTS = st.lists(st.integers(0, 200), max_size=8)


def run(decoder, chunks):
    """Feed chunks of ids to a decoder, finish it, and return the merged deltas."""
    return merge([delta for chunk in chunks for delta in decoder.feed(chunk)] + decoder.finish())


def text_of(deltas, kind=TextDelta):
    """Return the joined text of the deltas of a kind."""
    return "".join(delta.text for delta in deltas if isinstance(delta, kind))


def as_deltas(chunks):
    """Return what `ChatDecoder` makes of chunks: merged deltas, and the ids that are left."""
    deltas, carry = [], []
    for chunk in chunks:
        carry = [*carry, *chunk.ids]
        if chunk.channel is Channel.TOOL_CALL and (chunk.text or chunk.name or chunk.complete or chunk.malformed):
            says = {"call": chunk.call, "complete": chunk.complete, "malformed": chunk.malformed}
            deltas.append(ToolCallDelta(chunk.name, chunk.text, carry, **says))
        elif chunk.text and chunk.channel is Channel.ANSWER:
            deltas.append(TextDelta(chunk.text, carry, malformed=chunk.malformed))
        elif chunk.text:
            deltas.append(ReasoningDelta(chunk.text, carry))
        else:
            continue
        carry = []
    return merge(deltas), carry
