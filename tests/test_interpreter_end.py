"""A process ends in order while threads are inside the compiled modules; a subinterpreter is refused."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import json, sys, threading, time
from collections.abc import Mapping
import numpy as np
import tokenweir
from tokenweir import ChatDecoder, ChatTemplate, DecodeStream, PromptCache, Ragged, Tokenizer
from tokenweir.templates import _native

class Message(Mapping):  # whose keys are computed by Python, so that the thread leaves the core in the middle of a call
    def __getitem__(self, key):
        time.sleep(0.001)
        return {"role": "user", "content": text}[key]
    def __iter__(self):
        return iter(("role", "content"))
    def __len__(self):
        return 2

tok = Tokenizer.default()
text = "It was a bright cold day in April, and the clocks were striking thirteen. " * 2_000
short = text[:200]
ids = tok.encode(text)
array = np.array(ids, np.int32)
template = ChatTemplate(
    "{% for m in messages %}{{ m.role + ': ' + m.content | upper }}<|im_end|>{% endfor %}{{ strftime_now('%Y') }}"
)
messages = [{"role": "user", "content": text}]
body = json.dumps(messages).encode()
prompt = template.render(messages)
source = tok.spec
cache = PromptCache()
rows = tok.encode_batch([text] * 4)

CALLS = {
    "encode": lambda: tok.encode(text),
    "encode a short text": lambda: tok.encode(short),
    "encode_array": lambda: tok.encode_array(text),
    "encode_with_offsets": lambda: tok.encode_with_offsets(text),
    "encode_pair": lambda: tok.encode_pair(text, short),
    "encode_batch": lambda: tok.encode_batch([text] * 8),
    "encode with guards": lambda: tok.encode(text, guarded=range(0, 40_000, 7)),
    "count": lambda: tok.count(text),
    "truncate": lambda: tok.truncate(text, 500),
    "chunks": lambda: list(tok.chunks(text, 500)),
    "decode": lambda: tok.decode(array),
    "decode_batch": lambda: tok.decode_batch(rows),
    "stream": lambda: DecodeStream(tok).feed(ids),
    "ChatDecoder": lambda: ChatDecoder(tok, reasoning="think").feed(ids),
    "load": lambda: Tokenizer.from_spec(source),
    "render": lambda: template.render(messages),
    "render from Python's mappings": lambda: template.render([Message()] * 3),
    "read messages": lambda: _native.Messages.from_json(body),
    "encode a prompt": lambda: prompt.encode(tok),
    "keep a prompt": lambda: cache.render(messages, template=template, tokenizer=tok),
    "compile a template": lambda: ChatTemplate("{{ messages }}" * 2_000),
}

def work(call):
    while True:
        call()

for name in sys.argv[1:]:
    CALLS[name]()
    threading.Thread(target=work, args=[CALLS[name]], daemon=True).start()
time.sleep(0.15)
"""
NAMES = [line.split('"')[1] for line in PROGRAM.splitlines() if line.startswith('    "') and "lambda" in line]
GROUPS = [["encode"], ["render from Python's mappings"], NAMES[:10], NAMES[10:15], NAMES[15:]]


def run(program, *arguments):
    command = [sys.executable, "-P", "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("calls", GROUPS, ids=lambda calls: calls[0])
def test_threads_inside_the_core(calls):
    done = run(PROGRAM, *calls)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="_xxsubinterpreters is private, and gone")
def test_a_subinterpreter_is_refused():
    done = run(
        "import _xxsubinterpreters as made\n"
        "made.run_string(made.create(), 'import warnings; warnings.simplefilter(\"ignore\"); import tokenweir; tokenweir.Tokenizer')\n"
    )
    assert done.returncode == 1
    assert "ImportError" in done.stderr and "subinterpreter" in done.stderr
