"""Every regular expression of the package: what clients and models write is matched in linear time.

A new pattern fails here until it is listed: in `CLIENTS` with the method that it is used by, if its text may be that of a
client or a model, else in `OWN`.
"""

import ast
import importlib
import os
import re
import sys
from collections import deque
from heapq import nlargest
from pathlib import Path

import pytest
from full_run import FULL
from pattern_steps import Counter, TooMany, attacks

import tokenweir
from tokenweir.stream.decode.parsers.blocks.value_ends import _following_tags
from tokenweir.stream.decode.parsers.text_search import first_of
from tokenweir.templates.styles.grammars import ParameterStyle
from tokenweir.templates.styles.tools import TOOL_STYLES

PACKAGE = Path(tokenweir.__file__).parent
SHORT, LONG = 50, 200
"""Characters of the texts whose steps are compared."""
FEW = 10
"""Steps a character that no pattern needs an excuse for."""
LARGE = 1 << 20 if FULL else 1 << 17
"""Characters of the texts that the patterns themselves are run on."""
TAKES_PATTERN = {f"re.{name}" for name in dir(re) if name.islower()} - {"re.escape", "re.purge"}

CLIENTS = {
    "cli.terminal.live_lines._STYLE": "finditer",
    "stream.chat.media._DATA_URL": "match",
    "stream.decode.parsers.blocks.coercion._INTEGER": "fullmatch",
    "stream.decode.parsers.blocks.coercion._RUNS": "finditer",
    "stream.decode.parsers.blocks.json_block._BRACKET": "search",
    "stream.decode.parsers.blocks.json_block._END": "search",
    "stream.decode.parsers.blocks.json_block._SECOND_WORD": "search",
    "stream.decode.parsers.blocks.json_block._in_header": "fullmatch",
    "stream.decode.parsers.blocks.json_block._marked_name": "fullmatch",
    "stream.decode.parsers.blocks.literal_block._BEGINS_NAME": "match",
    "stream.decode.parsers.blocks.literal_block._ENDS_NAME": "search",
    "stream.decode.parsers.blocks.literal_block._ENDS_WORD": "search",
    "stream.decode.parsers.blocks.literal_block._KEY": "match",
    "stream.decode.parsers.blocks.literal_block._STACK": "fullmatch",
    "stream.decode.parsers.blocks.literals._ARGUMENT": "match",
    "stream.decode.parsers.blocks.literals._CLOSING": "match",
    "stream.decode.parsers.blocks.literals._ELEMENT": "match",
    "stream.decode.parsers.blocks.literals._ESCAPE": "finditer",
    "stream.decode.parsers.blocks.literals._PYTHON_NUMBER": "fullmatch",
    "stream.decode.parsers.blocks.literals._TOKEN": "match",
    "stream.decode.parsers.blocks.nested_values._parsed": "finditer",
    "stream.decode.parsers.blocks.python_objects._NEXT": "search",
    "stream.decode.parsers.blocks.stepped_block.OTHER_THAN_SPACE": "search",
    "stream.decode.parsers.blocks.tagged_calls._BEGINNING": "match",
    "stream.decode.parsers.blocks.typed_literal_block._FOLLOWS": "match",
    "stream.decode.parsers.blocks.typed_literal_block._QUOTED": "match",
    "stream.decode.parsers.blocks.value_ends._following_tags": "match",
    "stream.decode.parsers.detection._ROLE": "match",
    "stream.decode.parsers.harmony._BEGINNING": "match",
    "stream.decode.parsers.harmony._BEHIND_CALL": "search",
    "stream.decode.parsers.harmony._FALSE_START": "fullmatch",
    "stream.decode.parsers.harmony._HEADER": "fullmatch",
    "stream.decode.parsers.harmony._OTHER_THAN_SPACE": "search",
    "stream.decode.parsers.harmony._XML": "search",
    "stream.decode.parsers.inkling._HEADER": "fullmatch",
    "stream.decode.parsers.muse._BEGINNING": "match",
    "stream.decode.parsers.muse._HEADER": "fullmatch",
    "stream.decode.parsers.muse._OTHER_THAN_SPACE": "search",
    "stream.decode.parsers.reasoning._CALL_FOLLOWS": "match",
    "stream.decode.parsers.reasoning._TICKS": "finditer",
    "stream.decode.parsers.text_search.first_of": "search",
    "stream.serve.wire.anthropic.history.BILLING_HEADER": "fullmatch",
    "stream.serve.wire.openai.chat._ID": "fullmatch",
    "stream.serve.wire.responses.custom_input._PART": "finditer",
    "stream.serve.wire.shared.checking._HALF_PAIR": "search",
    "stream.serve.wire.shared.checking._has_half_pair": "search",
    "stream.serve.wire.shared.checking.convert_validation_error": "finditer",
    "stream.serve.wire.shared.contents._HEADER": "match",
    "templates.prompt.segments": "search",
}
"""Patterns whose text a client or a model wrote, by the method that they are used by."""

OWN = {
    "cli.decode.parse_ids",
    "cli.terminal.token_view.svg",
    "encode.formats.gguf.pre.stage",
    "encode.formats.gguf.word_piece._CAPITAL",
    "encode.formats.hub._NAME",
    "encode.formats.hub._REVISION",
    "encode.formats.known_rank_files._NUMBERS",
    "encode.formats.known_rank_files._name",
    "encode.formats.tekken._special_tokens",
    "encode.pattern.parser._group",
    "encode.pattern.parser._quantifier",
    "gpu.kernels._KERNEL",
    "gpu.shared._COMMENT",
    "gpu.shared._CONSTEXPR",
    "gpu.shared._ENUM",
    "gpu.shared._FIELD",
    "gpu.shared._INCLUDE",
    "gpu.shared._NO_FIELD",
    "gpu.shared._SUFFIX",
    "gpu.shared._flattened",
    "gpu.shared.fields",
    "integrations.turns._MESSAGE",
    "integrations.turns._THINKING",
    "stream.decode.parsers.detection._WORDED",
    "stream.prompts.cache.cached_prompt._MESSAGE",
    "stream.serve.tokens.render._MESSAGE",
    "templates.chat_template._OWN_ROLES",
    "templates.chat_template._TOKEN_FORMS",
    "templates.masks._MESSAGE",
    "templates.styles.grammars.__post_init__",
}
"""Patterns for texts of the package, of the user who runs it, and of the files that this user chose."""

_HEADERS = sorted({style.header for style in TOOL_STYLES.values() if style.header})
_MARKS = [("<tool_call>", "</tool_call>", "<|im_end|>"), ("</aaaaaaaaaaaaaaaa>", "</a>"), ('"',), ()]
_GIVEN = {
    "stream.decode.parsers.text_search.first_of": [first_of(marks).__self__ for marks in _MARKS],
    "stream.decode.parsers.blocks.json_block._in_header": _HEADERS,
    "stream.decode.parsers.blocks.json_block._marked_name": [],  # the same ones
    "stream.decode.parsers.blocks.nested_values._parsed": ["<(?P<closes>/?)(?P<name>[^<>]+)>"],
    "stream.decode.parsers.blocks.python_objects._NEXT": [r"['\\]", r"['\"\[\]{}()]"],
    "stream.decode.parsers.blocks.value_ends._following_tags": [
        pattern
        for style in TOOL_STYLES.values()
        if isinstance(style.grammar, ParameterStyle) and (pattern := _following_tags(style.grammar)) is not None
    ],
    "templates.prompt.segments": [r"<\|im_start\|>|<\|im_end\|>|</think>|<think>"],
}
"""Patterns that the package makes while it runs."""


def _calls():
    """Yield the name, module and call of each pattern in the package."""
    for folder, _, files in os.walk(PACKAGE, followlinks=True):
        for file in sorted(files):
            path = Path(folder, file)
            if path.suffix != ".py":
                continue
            module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
            tree = ast.parse(path.read_text("utf-8"))
            assert not any(isinstance(node, ast.ImportFrom) and node.module == "re" for node in ast.walk(tree)), path
            yield from ((f"{module}.{name}", module, call) for name, call in _patterns(tree))


def _patterns(tree, name=""):
    """Yield each call of a function of `re` that takes a pattern, with the name of its constant or function."""
    for node in ast.iter_child_nodes(tree):
        inner = name
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = node.name
        elif isinstance(node, ast.Assign) and not name:
            inner = [each.id for each in ast.walk(node.targets[0]) if isinstance(each, ast.Name)][-1]
        if isinstance(node, ast.Call) and ast.unparse(node.func) in TAKES_PATTERN:
            yield name, node
        yield from _patterns(node, inner)


CALLS = list(_calls())


def test_every_pattern_is_listed():
    found = {name for name, _, _ in CALLS}
    listed = CLIENTS.keys() | OWN
    assert not found - listed, "list them in CLIENTS or OWN"
    assert not listed - found, "they are gone"
    assert not CLIENTS.keys() & OWN


def _cases():
    for name, module, call in CALLS:
        if name in CLIENTS and name not in _GIVEN:
            space = vars(importlib.import_module(f"tokenweir.{module}"))
            yield name, eval(ast.unparse(call), dict(space)) if call.func.attr == "compile" else _literal(call)
    for name, patterns in _GIVEN.items():
        yield from ((name, pattern) for pattern in patterns)


def _literal(call):
    return ast.literal_eval(call.args[0])


CASES = {f"{name} {number}": (name, re.compile(pattern)) for number, (name, pattern) in enumerate(_cases())}


@pytest.fixture
def deep():
    """The counting matcher calls itself for each character."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.parametrize(("name", "pattern"), CASES.values(), ids=CASES)
def test_texts_of_clients_are_matched_in_linear_time(name, pattern, deep):
    method, counter = CLIENTS[name], Counter(pattern)
    steps = {}
    for number, attack in enumerate(attacks(counter)):
        text = attack(LONG)
        few = FEW * (len(text) + 1)
        try:
            steps[number] = counter.run(method, text, few)
        except TooMany:
            shorter = counter.run(method, attack(SHORT))
            try:
                steps[number] = counter.run(method, text, 6 * shorter + few)
            except TooMany:
                pytest.fail(f"{pattern.pattern!r}: {shorter} steps for {attack(SHORT)!r}, above six times for {LONG}")
    for number in nlargest(3, steps, key=steps.get):
        text = list(attacks(counter))[number](LARGE)
        found = getattr(pattern, method)(text)
        if method == "finditer":
            deque(found, 0)


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"data:([\w.+-]+/[\w.+-]+)[^,]*,", "match"),
        (r"\s+$", "search"),
        (r"(a|a)*b", "match"),
        (r"\s*\w*\s*\d*x", "fullmatch"),
    ],
)
def test_the_matcher_finds_patterns_that_are_not_linear(pattern, method, deep):
    counter = Counter(re.compile(pattern))
    ratios = []
    for attack in attacks(counter):
        try:
            ratios.append(counter.run(method, attack(40), 1 << 14) / counter.run(method, attack(10)))
        except TooMany:
            break
    else:
        assert max(ratios) > 8
