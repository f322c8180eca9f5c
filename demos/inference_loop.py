"""tokenweir inside an inference loop: a real engine yields ids, and clean text leaves the loop.

    python demos/inference_loop.py

The loop is your own: no server, no async. The engine is CTranslate2 with a tiny transformer that this program writes
first (random weights, so the answer is word salad). `ChatDecoder` decodes, finds the end token and the stop strings, and
never gives half a character or the beginning of a stop string.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import ctranslate2
from tiny_model import write_tiny_model

from tokenweir import ChatDecoder, ChatTemplate, Delta, Finish, ReasoningDelta, TextDelta, Tokenizer


def main(folder: Path) -> None:
    tokenizer = Tokenizer.default()
    silent = tokenizer.special_tokens.values()
    write_tiny_model(folder, tokenizer.vocab_size, eos_id=min(tokenizer.eos_ids), silent=silent)
    engine = ctranslate2.Generator(str(folder), intra_threads=1)

    messages = [{"role": "user", "content": "Tell me about <|im_end|> and other tokens."}]
    prompt_ids = ChatTemplate.from_tokenizer(tokenizer).render(messages, enable_thinking=False).encode(tokenizer)
    print(f"prompt: {len(prompt_ids)} ids, {prompt_ids.count(tokenizer.token_to_id('<|im_end|>'))} of them <|im_end|>")

    decoder = ChatDecoder(tokenizer, prompt_ids=prompt_ids, stop=["\n\n"], max_tokens=40)
    prompt = [str(token_id) for token_id in prompt_ids]  # CTranslate2 takes names; here these are the ids
    for step in engine.generate_tokens(prompt, max_length=1000, repetition_penalty=1.3):
        show(decoder.feed([step.token_id]))
        if decoder.finished:
            break  # leaving the generator stops CTranslate2
    show(decoder.finish())  # what is held back, if the engine ended first


def show(deltas: list[Delta]) -> None:
    for delta in deltas:
        match delta:
            case TextDelta(text) | ReasoningDelta(text):
                # Model output is not trusted: no control character reaches the terminal as such.
                print(text if text.isprintable() else ascii(text), end="", flush=True)
            case Finish(reason, stop_reason, usage):
                print(f"\nended by {reason} ({stop_reason!r}) after {usage.completion_tokens} of the engine's ids")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(Path(name))
