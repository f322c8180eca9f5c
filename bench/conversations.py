"""Cost of the next prompt of a conversation, with `PromptCache` and without, and the number of wrong ids.

    python bench/conversations.py [--turns 200] [--write]

An agent's conversations: a system prompt, four tools, and a call with thinking and a result of 4 kB each turn; a user speaks
every 25 turns. Two conversations are interleaved, so that each turn finds the other's prompt kept as well. Every prompt of every
turn is compared with `template.render(messages).encode(tokenizer)`.

Beside it stands what a server can have today: minijinja, and fastokens with its segment cache, which encodes anew what lies between
two added tokens if it has not seen it.

Columns of the first table:

- render, encode: of a whole prompt without a cache at the last turn. "render" is also the most that a replay of the rendering could save
  of a turn.
- turn: `Conversation.prompt`, from messages to ids, as the median of the ten turns up to the one named. "body" begins with the JSON of a
  request of Chat Completions.
- peers: the last turn by minijinja and fastokens. "refused" names the library that gave no prompt, "differs" means another text or other ids.
- all turns: seconds of one conversation.
- bytes: all memory that the cache keeps, by byte of the prompt's UTF-8.
- wrong: prompts of all turns of both conversations whose ids differ from those without a cache.

The second table is toktier's F2 protocol, for the encoding alone: sessions whose first text has 2K to 256K characters
and that get 30 texts of 16 to 4,096 characters appended, both log-uniform. gigatoken and toktier are measured where they are installed;
toktier 0.3.0 gives all ids of a session with each text.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib
import json
import math
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import msgspec
import numpy as np
from shared.peers import json_file
from shared.report import DATA, arguments, machine, publish, table, told
from templates import SPECIAL, code, minijinja_renderer

from tokenweir.encode import _core
from tokenweir.encode.spec import AddedToken
from tokenweir.encode.tokenizer import Tokenizer, core_of
from tokenweir.stream.prompts.cache.cached_prompt import CachedPrompt
from tokenweir.stream.prompts.cache.conversation import Conversation
from tokenweir.stream.prompts.cache.prompt_cache import PromptCache
from tokenweir.stream.prompts.cache.prompt_index import KeptPrompt
from tokenweir.stream.serve.wire.openai.chat import parse_chat_json
from tokenweir.templates.chat_template import ChatTemplate

PAIRS = (
    ("templates/Qwen-Qwen3-0.6B", "qwen3"),
    ("templates-more/Qwen3-Coder", "qwen3"),
    ("templates/GLM-4.6", "qwen3"),
    ("templates/meta-llama-Llama-3.3-70B-Instruct", "llama-3.1"),
    ("templates/openai-gpt-oss-120b", "openai/o200k_base.tiktoken"),
    ("templates-more/deepseek-ai-DeepSeek-V3.2", "deepseek-litellm"),
    ("templates/ByteDance-Seed-OSS", "qwen3"),
    ("templates-more/google-gemma-4-31B-it-interleaved", "gemma"),
    ("templates-more/MiniMax-M2", "openai/o200k_base.tiktoken"),
    ("templates-more/tencent-Hy3", "qwen3"),
)
GEMMA_4 = (
    *("<|turn>", "<turn|>", "<|channel>", "<channel|>", "<|tool>", "<tool|>", "<|tool_call>", "<tool_call|>"),
    *("<|tool_response>", "<tool_response|>", '<|"|>', "<|think|>", "<|image|>", "<|audio|>", "<|video|>"),
)
"""Tokens of Gemma 4's template, which the tokenizer of an older Gemma lacks."""
PASSES = 5
"""Passes with a new cache each, of which the lowest time of a turn counts: the one that other users of the machine have disturbed least."""
NOTE = 'Milliseconds of CPU time, the lowest of five passes; "all turns" in seconds; "bytes" of memory a byte of the prompt. `bench/conversations.py` explains the columns.'
F2_NOTE = """Milliseconds of CPU time of one appended text, encoding alone. "wrong" counts final texts with other ids than `encode`."""
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"{name} a file of the project, by its path.",
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "from": {"type": "integer"}, "to": {"type": "integer"}},
                "required": ["path"],
            },
        },
    }
    for name in ("read", "write", "search", "run")
]


def turn(number: int, source: str) -> list[dict[str, Any]]:
    """Messages of one turn."""
    at = number * 1237 % (len(source) - 4000)
    function = {"name": "read", "arguments": {"path": f"src/module_{number}.py", "from": number, "to": number + 90}}
    call = {"id": f"call{number:05d}", "type": "function", "function": function}
    thinking = f"Step {number}: the last result looks right, so the next file to read is module {number}."
    asked = [{"role": "user", "content": f"Go on with part {number // 25}."}] if number % 25 == 0 else []
    return [
        *asked,
        {"role": "assistant", "content": "", "reasoning_content": thinking, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "name": "read", "content": source[at : at + 4000]},
    ]


def request_body(messages: list[dict[str, Any]]) -> bytes:
    """The JSON of a request of Chat Completions, where a call's arguments are JSON text."""
    sent = []
    for message in messages:
        calls = [
            call
            | {
                "function": call["function"]
                | {"arguments": msgspec.json.encode(call["function"]["arguments"]).decode()}
            }
            for call in message.get("tool_calls", ())
        ]
        sent.append(message | {"tool_calls": calls} if calls else message)
    return msgspec.json.encode({"model": "demo", "messages": sent})


def messages_of(body: bytes) -> Sequence[Any]:
    """The messages of a request, as the server reads them."""
    return parse_chat_json(body, max_items=1 << 20).conversation()


def lowest(passes: Iterable[Sequence[float]]) -> list[float]:
    """The lowest time of each turn."""
    return [min(each) for each in zip(*passes, strict=True)]


def pair(template_name: str, tokenizer_name: str) -> tuple[ChatTemplate, Tokenizer]:
    """Load a pair of `PAIRS`."""
    template = ChatTemplate((DATA / f"{template_name}.jinja").read_text("utf-8"), special_tokens=SPECIAL)
    tokenizer = Tokenizer.from_file(DATA / "tokenizers" / tokenizer_name)
    if tokenizer_name == "gemma":
        tokenizer = tokenizer.with_added_tokens([AddedToken(text, special=True) for text in GEMMA_4])
    return template, tokenizer


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result and the milliseconds of CPU time that it took this thread."""
    start = time.thread_time()
    result = work()
    return result, (time.thread_time() - start) * 1e3


def peers_turn(template_name: str, tokenizer_name: str, messages: list[dict[str, Any]], expected: CachedPrompt) -> str:
    """Milliseconds of CPU time of a turn by minijinja and fastokens, whose segment cache has the turn before."""
    file = DATA / "tokenizers" / tokenizer_name
    file = json_file(file / "tokenizer.json" if file.is_dir() else file)
    times = []
    try:
        render = minijinja_renderer((DATA / f"{template_name}.jinja").read_text("utf-8"))
        encoder = importlib.import_module("fastokens._native").Tokenizer.from_file(str(file))

        def prompt(messages: list[dict[str, Any]]) -> tuple[str, Any]:
            text = render(
                {"messages": messages, "tools": TOOLS, "add_generation_prompt": True, "documents": None} | SPECIAL
            )
            return text, encoder.encode_batch_flat([text], False)[0]  # their bytes

        for _ in range(PASSES):
            encoder.enable_segment_cache(256 << 20)
            prompt(messages[:-2])
            (text, ids), milliseconds = timed(lambda: prompt(messages))
            times.append(milliseconds)
    except Exception as error:  # noqa: BLE001 - a peer may be absent, or refuse the file or the template
        print(f"{template_name}: {type(error).__name__}: {error}", file=sys.stderr)
        return "refused"
    differs = text != expected.text or not np.array_equal(np.frombuffer(ids, np.int32), expected.ids)
    return f"{min(times):.1f}{' (differs)' if differs else ''}"


class Pass(NamedTuple):
    """Two interleaved conversations with one cache.

    Attributes:
        times: Milliseconds of the last turn's "render" and "encode", and of each "turn" and "body".
        messages: All messages of the first conversation.
        prompt: Its last prompt.
        cache: The cache.
        wrong: Number of prompts with wrong ids.

    """

    times: dict[str, list[float]]
    messages: list[dict[str, Any]]
    prompt: CachedPrompt
    cache: PromptCache
    wrong: int


def converse(template: ChatTemplate, tokenizer: Tokenizer, turns: int, source: str) -> Pass:
    """Have two conversations: one of messages, and one of requests' JSON."""
    cache = PromptCache(256 << 20)
    system = "You are a coding agent. " * 40
    talked = Conversation(template, tokenizer, TOOLS, prompts=cache, history="canonical")
    asked: list[Any] = []
    for which, messages in enumerate((talked.messages, asked)):
        messages.append({"role": "system", "content": f"{system}{'AB'[which]}"})
    times: dict[str, list[float]] = {"turn": [], "body": []}
    wrong = 0
    for number in range(turns):
        for which, messages in enumerate((talked.messages, asked)):
            messages += turn(number + 7000 * which, source) if number or not which else turn(0, source)
            prompt, render = timed(lambda messages=messages: template.render(messages, tools=TOOLS))
            if which:
                body = request_body(messages)
                found, milliseconds = timed(
                    lambda body=body: cache.render(
                        messages_of(body), template=template, tokenizer=tokenizer, tools=TOOLS
                    )
                )
                times["body"].append(milliseconds)
                # Some templates write arguments given as text otherwise.
                prompt = template.render(messages_of(body), tools=TOOLS)
            else:
                found, milliseconds = timed(talked.prompt)
                times["turn"].append(milliseconds)
                last = found
            guarded = prompt.guarded_for(tokenizer)
            expected, encode = timed(
                lambda text=prompt.text, guarded=guarded: tokenizer.encode_array(
                    text, add_special_tokens=False, guarded=guarded
                )
            )
            wrong += not np.array_equal(found.ids, expected)
    return Pass(times | {"render": [render], "encode": [encode]}, list(talked.messages), last, cache, wrong)


def measure(template_name: str, tokenizer_name: str, turns: int) -> list[str]:
    """A row of the first table."""
    template, tokenizer = pair(template_name, tokenizer_name)
    source = code(400_000)
    done = [converse(template, tokenizer, turns, source) for _ in range(PASSES)]
    times = {name: lowest(one.times[name] for one in done) for name in done[0].times}
    last = done[-1]
    size = sum(kept.tape.size for kept in last.cache._store.kept if isinstance(kept, KeptPrompt))
    return [
        Path(template_name).name,
        f"{len(last.prompt.text.encode()) / 1e3:.0f}",
        f"{len(last.prompt.ids) / 1e3:.0f}",
        f"{times['render'][0]:.1f}",
        f"{times['encode'][0]:.1f}",
        f"{median(times['turn'][5:15]):.2f}",
        f"{median(times['turn'][-10:]):.2f}",
        f"{median(times['body'][-10:]):.2f}",
        peers_turn(template_name, tokenizer_name, last.messages, last.prompt),
        f"{sum(times['turn']) / 1e3:.2f}",
        f"{last.cache.held_bytes / size:.2f}",
        str(sum(one.wrong for one in done)),
    ]


def log_uniform(pick: random.Random, least: int, most: int) -> int:
    """A length whose logarithm is uniform."""
    return round(math.exp(pick.uniform(math.log(least), math.log(most))))


def sessions(count: int) -> list[list[str]]:
    """Texts of sessions: the first one, and those that are appended."""
    pick = random.Random(11)
    text = code(400_000) + (DATA / "corpora" / "war-and-peace.txt").read_text("utf-8")[:400_000]

    def piece(length: int) -> str:
        at = pick.randrange(len(text) - length)
        return text[at : at + length]

    return [
        [piece(log_uniform(pick, 2000, 256_000)), *(piece(log_uniform(pick, 16, 4096)) for _ in range(30))]
        for _ in range(count)
    ]


def resuming(tokenizer: Tokenizer) -> Callable[[], Callable[[str], Any]]:
    """Ours: a tape for each session."""
    encoder = core_of(tokenizer).encoder

    def start() -> Callable[[str], Any]:
        last = None

        def encode(text: str) -> Any:
            nonlocal last
            last = _core.tape(encoder, text, (), last)
            return last.ids

        return encode

    return start


def peers(tokenizer: Tokenizer, file: Path) -> dict[str, Callable[[], Callable[[str], Any]]]:
    """Return the encoders of sessions by name: each makes a function for one session."""
    found: dict[str, Callable[[], Callable[[str], Any]]] = {
        "tokenweir, tapes": resuming(tokenizer),
        "tokenweir, plain": lambda: lambda text: tokenizer.encode_array(text, add_special_tokens=False),
    }
    for name, peer in (("gigatoken, plain", gigatoken_of), ("toktier, sessions", toktier_of)):
        try:
            found[name] = peer(file)
        except Exception as error:  # noqa: BLE001 - a peer may be absent or refuse the file
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
    return found


def gigatoken_of(file: Path) -> Callable[[], Callable[[str], Any]]:
    """The whole text, each time."""
    gigatoken = importlib.import_module("gigatoken").Tokenizer(str(file))
    return lambda: lambda text: gigatoken.encode(text)


def toktier_of(file: Path) -> Callable[[], Callable[[str], Any]]:
    """Sessions of toktier, to which the new text is appended.

    It certifies files by their hashes and downloads them. Here they are put where it keeps downloads.
    """
    toktier, artifacts = importlib.import_module("toktier"), importlib.import_module("toktier.artifacts")
    home = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, home)
    config = toktier.Config.resolve(home=home, offline=True)
    shipped = Path(artifacts.__file__).parent / "tables" / "artifact_manifest.v1.json"
    entry = json.loads(shipped.read_text("utf-8"))["qwen3_8b"]
    entry["files"] = {
        one.name: {"sha256": hashlib.sha256(one.read_bytes()).hexdigest(), "size": one.stat().st_size}
        for one in (file, file.with_name("tokenizer_config.json"))
    }
    manifest = artifacts.ArtifactManifest.from_mapping({"qwen3_8b": entry})
    folder = toktier.paths.artifact_cache_dir(config) / manifest.get("qwen3_8b").directory_name
    shutil.copytree(file.parent, folder)
    tokenizer = toktier.load("qwen3_8b", device="cpu", manifest=manifest, config=config)

    def start() -> Callable[[str], Any]:
        session = ExitStack().enter_context(tokenizer.session())

        def encode(text: str) -> Any:
            return session.append(text[len(session.text) :]).all_ids

        return encode

    return start


def f2(count: int) -> list[list[str]]:
    """Rows of the second table: the encoders take turns at every text."""
    file = DATA / "tokenizers" / "qwen3" / "tokenizer.json"
    tokenizer = Tokenizer.from_file(file)
    encoders = peers(tokenizer, file)
    times: dict[str, list[float]] = {name: [] for name in encoders}
    wrong = dict.fromkeys(encoders, 0)
    for first, *appended in sessions(count):
        begun = {name: start() for name, start in encoders.items()}
        text = first
        for encode in begun.values():
            encode(text)
        for piece in appended:
            text += piece
            for name, encode in begun.items():
                ids, milliseconds = timed(lambda encode=encode, text=text: encode(text))
                times[name].append(milliseconds)
                last = ids if piece is appended[-1] else None
                if last is not None:
                    wrong[name] += list(last) != tokenizer.encode(text, add_special_tokens=False)
    rows = []
    for name, spent in times.items():
        spent.sort()
        quantiles = (spent[int(len(spent) * share)] for share in (0.5, 0.9, 0.99))
        rows.append([name, *(f"{each:.3f}" for each in quantiles), str(wrong[name])])
    return rows


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__, turns=200, sessions=200)
    rows = [told(measure(*names, options.turns)) for names in PAIRS]
    header = [
        "template",
        "kB",
        "k ids",
        "render",
        "encode",
        "turn 10",
        f"turn {options.turns}",
        f"body {options.turns}",
        "peers",
        "all turns, s",
        "bytes",
        "wrong",
    ]
    f2_table = table(["F2, Qwen3's vocabulary", "p50", "p90", "p99", "wrong"], f2(options.sessions))
    publish("conversations", "\n\n".join((NOTE, table(header, rows), F2_NOTE, f2_table, machine())), options.write)


if __name__ == "__main__":
    main()
