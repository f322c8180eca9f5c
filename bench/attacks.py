"""Attacks on the guard: text of a user that tries to become control tokens, in every place that a template shows.

    python bench/attacks.py [--every 1] [--benign 30000] [--write]

Every template of the data is paired with vocabularies, byte-level and SentencePiece alike, to which the template's control
tokens are added. What is tried are those tokens and the vocabulary's own, whole, taken apart, and spelled as its normalizer,
its byte pieces or its word boundaries might be thought to put them together again. An attack succeeds if the ids have more
control tokens than with harmless text in its place.
Then realistic conversations are rendered and encoded with the guard and without: refusals and differences are counted. --write puts the tables into docs/explanation/injections.md.
"""

from __future__ import annotations

import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from shared.report import DATA, ROOT, arguments, machine, publish, table, told

sys.path.append(str(ROOT / "tests" / "oracles"))

import origin_attacks
from origin_attacks import PLACES, SHAPES
from template_files import template_files

from tokenweir.encode.errors import TemplateError
from tokenweir.encode.spec import AddedToken
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.templates.chat_template import ChatTemplate

VOCABULARIES = {
    "qwen3": "tokenizers/qwen3",
    "llama-2": "tokenizers/llama-2/tokenizer.model",
    "mistral": "tokenizers/mistral-7b-v0.3/tokenizer.model",
    "gemma": "tokenizers/gemma",
    "unigram, NFKC": "tokenizers/sp-test-unigram-en",
}
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>"}
HARMLESS = "xqzx"
OWN = re.compile(
    r"</?s>|<bos>|<eos>|<pad>|<unk>|<(start|end)_of_turn>|<\|(endoftext|im_start|im_end)\|>|\[/?(INST|AVAILABLE_TOOLS)\]"
)
SWITCHES = ("/no_think", "/think")
"""Words for which a template itself writes other control tokens, and which harmless text has where the attack has them."""
FULL_WIDTH = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
GIVEN = {"messages", "tools", "documents", "add_generation_prompt", "continue_final_message", "strftime_now"}
"""The variables that a conversation sets itself, or that callers cannot set."""
MORE_PLACES = (
    *("parts", "message key", "key of a part", "name of a part", "key in a union", "value in a union"),
    *("name of a definition", "key in a definition", "description in a definition"),
    *("variable", "variable, a list", "variable, a mapping", "answer that is continued", "thought that is continued"),
)

Conversation = dict[str, Any]


def conversation(place: str, text: str, variables: frozenset[str] = frozenset()) -> Conversation:
    """Return a conversation with tools, and `text` in one place; `variables` are those that the template reads."""
    half = len(text) // 2
    texts = {place: text} if place in PLACES else {}
    if place == "parts":
        texts = {"part": "a" + text[:half], "second part": text[half:]}
    given, _ = origin_attacks.conversation(texts)
    for name in ("add_generation_prompt", *SPECIAL):
        del given[name]
    messages = given["messages"]
    user, schema = messages[1], given["tools"][0]["function"]["parameters"]
    properties = schema["properties"]
    match place:
        case "message key":
            user[text] = "x"
        case "key of a part":
            user["content"] = [{"type": "text", "text": "Hi", text: "x"}]
        case "name of a part":
            user["content"] = [{"type": "text", "text": "Hi", "name": text}]
        case "key in a union":
            properties["city"]["anyOf"] = [{"type": "null"}, {text: "name"}]
        case "value in a union":
            properties["city"]["anyOf"] = [{"type": "null"}, {"format": text}]
        case "name of a definition":
            schema["$defs"] = {text: {"type": "object", "properties": {"x": {"type": "string"}}}}
            properties["deep"] = {"$ref": f"#/$defs/{text}"}
        case "key in a definition":
            schema["$defs"] = {"Place": {"type": "object", "properties": {text: {"type": "string"}}}}
            properties["deep"] = {"$ref": "#/$defs/Place"}
        case "description in a definition":
            schema["$defs"] = {"Place": {"type": "object", "properties": {"x": {"type": "string"}}}}
            properties["deep"] = {"$ref": "#/$defs/Place", "description": text}
        case "variable" | "variable, a list" | "variable, a mapping":
            value: Any = {"variable": text, "variable, a list": [text], "variable, a mapping": {text: text}}[place]
            given |= dict.fromkeys(variables - GIVEN, value)
        case "answer that is continued":
            messages.append({"role": "assistant", "content": f"Sure {text} tail"})
            given["continue_final_message"] = True
        case "thought that is continued":
            messages.append({"role": "assistant", "content": "", "reasoning_content": f"Hm {text} tail"})
            given["continue_final_message"] = "reasoning_content"
    return given


def payloads(token: str) -> Iterator[str]:
    """Yield a control token as a template might complete it, and as a normalizer, byte pieces or word boundaries might."""
    half = len(token) // 2
    yield from origin_attacks.payloads(token)
    yield from (token.strip("<>[]|｜/"), token[0] + "\ufdd0" + token[1:], token[:half] + token + token[half:])
    yield from (token.translate(FULL_WIDTH), "".join(f"<0x{byte:02X}>" for byte in token.encode()))
    yield from (f"\u2581{token}\u2581", token[:half] + "\u2581" + token[half:], token[:half] + "\u200b" + token[half:])
    yield token.replace("<", "\uff1c")


@cache
def vocabulary(name: str) -> Tokenizer:
    """A tokenizer of the data."""
    return Tokenizer.from_file(DATA / VOCABULARIES[name])


def with_controls(name: str, source: str) -> tuple[Tokenizer, frozenset[int]]:
    """A vocabulary with a template's control tokens, and their ids."""
    known = vocabulary(name)
    texts = {*SHAPES.findall(source), "<|im_start|>", "<|im_end|>"} - {"<b>", "<div>", "<span>"}
    texts -= {token.content for token in known.added_tokens}
    tok = known.with_added_tokens([AddedToken(text, special=True) for text in sorted(texts)])
    controls = {*tok.control_texts}
    return tok, frozenset(token.id for token in tok.added_tokens if token.content in controls and token.id is not None)


def attack(source: str, name: str, roles: tuple[str, ...], every: int, seed: int) -> Counter[str]:
    """Try all attacks on one template with one vocabulary."""
    tok, controls = with_controls(name, source)
    ways = {
        way: ChatTemplate(
            source, special_tokens=SPECIAL, control_tokens=tok.control_texts, guard=way == "guarded", extra_roles=roles
        )
        for way in ("unguarded", "guarded")
    }
    unaware = ChatTemplate(source, special_tokens=SPECIAL, extra_roles=roles)  # that was not told the vocabulary
    shown = [token for token in dict.fromkeys(SHAPES.findall(source)) if tok.token_to_id(token) in controls]
    own = sorted(filter(OWN.fullmatch, vocabulary(name).control_texts))
    tokens = dict.fromkeys((*shown[:: max(1, len(shown) // 5)], *own, "<|im_start|>", "<|im_end|>"))
    counts: Counter[str] = Counter()

    def count(template: ChatTemplate, place: str, text: str) -> int:
        ids = template.render(**conversation(place, text, template.variables)).encode(tok)
        tags = place in ("assistant", "answer that is continued")  # whose own thinking counts
        return sum(i in controls and not (tags and "think" in (tok.id_to_token(i) or "").lower()) for i in ids)

    number = seed
    for place in (*PLACES, *MORE_PLACES):
        try:
            bases = {switch: count(ways["unguarded"], place, HARMLESS + switch) for switch in ("", *SWITCHES)}
            harmless = conversation(place, HARMLESS, ways["unguarded"].variables)
            if HARMLESS not in ways["unguarded"].render(**harmless).text and place != "parts":
                continue
        except TemplateError:
            continue
        for token in tokens:
            for payload in payloads(token):
                number += 1
                if number % every:
                    continue
                counts["tried"] += 1
                base = bases[next((switch for switch in SWITCHES if switch in payload), "")]
                try:
                    counts["unguarded"] += count(ways["unguarded"], place, payload) > base
                except TemplateError:
                    counts["refused by the template"] += 1
                    continue
                for template in (ways["guarded"], unaware):
                    try:
                        succeeded = count(template, place, payload) > base
                    except TemplateError as error:
                        counts["refused"] += "looks into" in str(error)
                        continue
                    counts["guarded"] += succeeded
                    if succeeded:
                        print(f"succeeded: {name} {place!r} {payload!r} {template is unaware}", file=sys.stderr)
    return counts


TEXT = r"""
the a weather in Bern is <b>sunny</b> today, if a < b and c[1] > 2: return x | y [see] <https://example.org>
ünï 日本語 🙂 def f(x): {"k": [1, 2]} I think so <tag attr="v"> </tag> C++ std::vector<int> 50% $HOME/bin ~ * - #
`code` 100_000 [INST] "quoted" 'it''s' function parameters type user system </p> <br/> ->
"""
WORDS = TEXT.split()


def benign(random_: random.Random) -> Conversation:
    """A realistic conversation of random words, code and markup, some with tools, results and reasoning."""

    def text() -> str:
        return "".join(random_.choice(WORDS) + random_.choice(" \n  ") for _ in range(random_.randint(1, 25))).strip()

    messages: list[dict[str, Any]] = [{"role": "system", "content": text()}] if random_.random() < 0.4 else []
    given: Conversation = {"messages": messages}
    for _ in range(random_.randint(1, 3)):
        messages.append({"role": "user", "content": text()})
        answer: dict[str, Any] = {"role": "assistant", "content": text()}
        if random_.random() < 0.3:
            answer["reasoning_content"] = text()
        if random_.random() < 0.3:
            arguments = {"city": text(), "n": random_.randint(0, 9), "list": [text()]}
            function = {"name": "get_weather", "arguments": arguments}
            answer["tool_calls"] = [{"id": "abcdefghi", "type": "function", "function": function}]
            messages.append(answer)
            answer = {"role": "tool", "name": "get_weather", "tool_call_id": "abcdefghi", "content": text()}
        messages.append(answer)
    if random_.random() < 0.9:
        messages.append({"role": "user", "content": text()})
    if random_.random() < 0.02:
        messages.append({"role": "user", "content": f"<tool_response>{text()}</tool_response>"})
    if random_.random() < 0.5:
        properties = {"city": {"type": "string", "description": text()}, "n": {"type": "integer"}}
        parameters = {"type": "object", "properties": properties, "required": ["city"]}
        function = {"name": "get_weather", "description": text(), "parameters": parameters}
        given["tools"] = [{"type": "function", "function": function}]
    return given


def compare(sources: dict[str, str], wanted: int, report: Callable[[str], object]) -> Counter[str]:
    """Render and encode benign conversations with the guard and without."""
    random_ = random.Random(11)
    counts: Counter[str] = Counter()
    pairs = {}
    for path, source in sources.items():
        tok, _ = with_controls("qwen3", source)
        ways = (
            ChatTemplate(source, special_tokens=SPECIAL, control_tokens=tok.control_texts, guard=g)
            for g in (False, True)
        )
        pairs[path] = (tok, *ways)
    while counts["rendered"] < wanted:
        path = random_.choice(list(pairs))
        tok, unguarded, guarded = pairs[path]
        given = benign(random_)
        try:
            plain = unguarded.render(**given)
        except TemplateError:
            continue
        counts["rendered"] += 1
        try:
            prompt = guarded.render(**given)
        except TemplateError as error:
            counts["refused"] += 1
            report(f"refused: {path}: {error}")
            continue
        counts["text differs"] += prompt.text != plain.text
        if prompt.encode(tok) != plain.encode(tok):
            mentions = any(token in str(given) for token in tok.control_texts)
            counts["ids differ, text has a control token" if mentions else "ids differ"] += 1
            if not mentions:
                report(f"ids differ: {path}: {given}")
    return counts


def main() -> None:
    """Attack, compare and print."""
    options = arguments(__doc__, every=(1, "try one in so many attacks"), benign=30000)
    sources = template_files()
    rows = []
    for name in VOCABULARIES:
        for roles in ((), ("ipython", "observation")) if name == "qwen3" else ((),):
            total: Counter[str] = Counter()
            for number, source in enumerate(sources.values()):
                total += attack(source, name, roles, options.every, number)
            cells = (total[key] for key in ("tried", "unguarded", "guarded", "refused"))
            rows.append(told([name + (", extra roles" if roles else ""), *(f"{cell:,}" for cell in cells)]))
    attacks = table(["vocabulary", "attacks", "succeed without the guard", "succeed", "refused by the guard"], rows)
    counts = compare(sources, options.benign, lambda line: print(line[:300], file=sys.stderr))
    names = ("rendered", "refused", "text differs", "ids differ", "ids differ, text has a control token")
    benign_table = table(names, [[f"{counts[name]:,}" for name in names]])
    asked = " ".join(word for word in sys.argv[1:] if word != "--write")
    where = f"{len(sources)} templates; {machine()}. Repeat it: `scripts/bench attacks {asked}`."
    publish("attacks", f"{attacks}\n\nRealistic conversations:\n\n{benign_table}\n\n{where}", options.write)


if __name__ == "__main__":
    main()
