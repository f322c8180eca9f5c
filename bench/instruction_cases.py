"""Micro-cases whose instructions `bench/instructions.py` counts: one process runs all of them, on one thread.

    python bench/instruction_cases.py

Each case runs once before it is counted, so that imports and caches are those of a process in use. `os.getppid` marks where
a count begins and ends: callgrind writes the counts so far, and begins anew, whenever that function is called. Nothing else
here calls it. Only names that 0.2 has are used, since an older version runs this file too.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable

from tokenweir import ChatDecoder, ChatTemplate, DecodeStream, Tokenizer

ENGLISH = (
    "The committee met on Thursday and could not agree on the wording, so it adjourned until the 14th of March. " * 200
)
CODE = "def area(self, width: float = 1.0) -> float:\n    return self._sides[0] * width  # in metres\n\n" * 200
CHINESE = "委员会星期四开会，未能就措辞达成一致，因此休会至三月十四日。" * 200
UNSEEN = [
    " ".join(f"{number * 2654435761 % 1_000_003:x}" for number in range(begin, begin + 4_000)) for begin in (0, 4_000)
]
"""Words of the first run and of the second, which no cache has."""
SHORT = [f"Question {number}: what is the capital of country {number}?" for number in range(500)]
ANSWER = (
    "<think>The user asks for the capital, so a look-up will do.</think>It is a question of the register. "
    '<tool_call>\n{"name": "look_up", "arguments": {"country": "France", "fields": ["capital"]}}\n</tool_call>'
) * 8
TEMPLATE = (
    "{%- for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content | trim + '<|im_end|>\\n' }}"
    "{%- endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
CONVERSATION = [{"role": role, "content": ENGLISH[:400]} for _ in range(100) for role in ("user", "assistant")]


def cases() -> dict[str, Callable[[], object]]:
    """Return the cases by name."""
    tok = Tokenizer.default()
    template = ChatTemplate(TEMPLATE)
    unseen = iter(UNSEEN)
    english, answer = tok.encode(ENGLISH), tok.encode(ANSWER)

    def stream() -> None:
        decoder = DecodeStream(tok)
        for number in english[:2_000]:
            decoder.feed([number])

    def chat() -> None:
        decoder = ChatDecoder(tok, reasoning="think", tool_style="hermes", stop=["\n\nUser:", "###"])
        for number in answer:
            decoder.feed([number])

    return {
        "encode: English": lambda: tok.encode(ENGLISH),
        "encode: code": lambda: tok.encode(CODE),
        "encode: Chinese": lambda: tok.encode(CHINESE),
        "encode: unseen words": lambda: tok.encode(next(unseen)),
        "encode: 500 short texts": lambda: [tok.encode(text) for text in SHORT],
        "decode: English": lambda: tok.decode(english),
        "stream: 2,000 ids": stream,
        "chat: thinking and calls": chat,
        "template: 3 messages": lambda: template.render(CONVERSATION[:3]),
        "template: 200 messages": lambda: template.render(CONVERSATION),
    }


def main() -> None:
    gc.disable()
    for name, case in cases().items():
        case()
        os.getppid()
        case()
        os.getppid()
        print(name, flush=True)


if __name__ == "__main__":
    main()
