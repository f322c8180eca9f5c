"""tokenweir inside inference loops: real engines yield ids, and clean text leaves the loop.

    python demos/inference_loop.py                        all three, of which each says what it lacks
    python demos/inference_loop.py steps                  a synchronous loop over the steps of CTranslate2
    python demos/inference_loop.py server                 an asyncio server over CTranslate2, and two clients at once
    python demos/inference_loop.py streamer               transformers' `generate`, by way of its `streamer`

The pipeline is the same in each: end tokens, thinking, stop strings, and never half a character. The models are tiny
transformers with random weights, made here over the embedded vocabulary, so the answers are word salad.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path

from tokenweir import ChatDecoder, ChatTemplate, Delta, Finish, ReasoningDelta, Sampling, TextDelta, Tokenizer, chat

TOKENIZER = Tokenizer.default()
MESSAGES = [{"role": "user", "content": "Tell me about <|im_end|> and other tokens."}]
STOP, MAX_TOKENS = ("\n\n",), 40


def steps() -> None:
    """Feed the id of each step of CTranslate2's own loop to a `ChatDecoder`."""
    import ctranslate2

    prompt_ids = rendered()
    with tempfile.TemporaryDirectory() as folder:
        engine = ctranslate2.Generator(tiny_ctranslate2(folder), intra_threads=1)
        decoder = ChatDecoder(TOKENIZER, prompt_ids=prompt_ids, stop=STOP, max_tokens=MAX_TOKENS)
        prompt = [str(token_id) for token_id in prompt_ids]  # CTranslate2 takes names; here these are the ids
        for step in engine.generate_tokens(prompt, max_length=1000, repetition_penalty=1.3):
            show(decoder.feed([step.token_id]))
            if decoder.finished:
                break  # leaving the generator stops CTranslate2
        show(decoder.finish())  # what is held back, if the engine ended first


def server() -> None:
    """Serve answers as lines of JSON over TCP to two clients; a connection that closes stops its generation."""
    from tokenweir.stream.engines.ctranslate2 import CTranslate2Engine

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        messages = [{"role": "user", "content": (await reader.readline()).decode()}]
        sampling = Sampling(stop=STOP, max_tokens=MAX_TOKENS, temperature=0.9, top_k=50)
        try:
            async with chat(messages, engine=engine, tokenizer=TOKENIZER, sampling=sampling) as deltas:
                async for delta in deltas:
                    text = getattr(delta, "text", "")
                    writer.write(json.dumps({"kind": type(delta).__name__, "text": text}).encode() + b"\n")
                    await writer.drain()  # waits for a slow client, and the engine with it
        finally:
            writer.close()

    async def client(port: int, question: str) -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(question.encode() + b"\n")
        text = "".join([json.loads(line)["text"] async for line in reader])
        writer.close()
        return text

    async def run() -> None:
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            for text in await asyncio.gather(*(client(port, question) for question in ("First?", "Second?"))):
                print(printable(text))

    with tempfile.TemporaryDirectory() as folder:
        engine = CTranslate2Engine(tiny_ctranslate2(folder), intra_threads=1, inter_threads=2)
        asyncio.run(run())


def streamer() -> None:
    """Pass a `ChatStreamer` to transformers' `generate`, as streamer of its ids and as stopping criterion."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from tokenweir.stream.engines.transformers import ChatStreamer

    torch.manual_seed(0)
    size = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    ends = {"bos_token_id": None, "eos_token_id": sorted(TOKENIZER.eos_ids)}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=TOKENIZER.vocab_size, **size, **ends)).eval()
    prompt = torch.tensor([rendered()])
    decoding = ChatStreamer(TOKENIZER, show, stop=STOP, max_tokens=MAX_TOKENS)
    model.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        pad_token_id=min(TOKENIZER.eos_ids),
        max_new_tokens=MAX_TOKENS,
        do_sample=True,
        streamer=decoding,
        stopping_criteria=[decoding],
    )


# -- what they share ---------------------------------------------------------------------------------------------------


def rendered() -> list[int]:
    prompt_ids = ChatTemplate.from_tokenizer(TOKENIZER).render(MESSAGES, enable_thinking=False).encode(TOKENIZER)
    end = TOKENIZER.token_to_id("<|im_end|>")
    print(f"prompt: {len(prompt_ids)} ids, {prompt_ids.count(end)} of them <|im_end|>")
    return prompt_ids


def tiny_ctranslate2(folder: str) -> str:
    from tiny_model import write_tiny_model

    silent = TOKENIZER.special_tokens.values()
    write_tiny_model(Path(folder), TOKENIZER.vocab_size, eos_id=min(TOKENIZER.eos_ids), silent=silent)
    return folder


def show(deltas: list[Delta]) -> None:
    for delta in deltas:
        match delta:
            case TextDelta(text) | ReasoningDelta(text):
                print(printable(text), end="", flush=True)
            case Finish(reason, stop_reason, usage):
                print(f"\nended by {reason} ({stop_reason!r}) after {usage.completion_tokens} of the engine's ids")


def printable(text: str) -> str:
    """Return the text if it is printable, otherwise its ASCII form with escapes: model output is not trusted."""
    return text if text.isprintable() else ascii(text)


LOOPS = {
    "steps": (steps, ["ctranslate2"]),
    "server": (server, ["ctranslate2"]),
    "streamer": (streamer, ["torch", "transformers"]),
}


def main(names: list[str]) -> None:
    for name in names or LOOPS:
        loop, needed = LOOPS[name]
        print(f"-- {name}: {loop.__doc__}")
        try:
            loop()
        except ModuleNotFoundError as error:
            if error.name not in needed:
                raise
            print(f"left out: {error.name} is not installed; pip install {' '.join(needed)}")


if __name__ == "__main__":
    if unknown := set(sys.argv[1:]) - LOOPS.keys():
        sys.exit(f"there is no loop {', '.join(sorted(unknown))}; there are {', '.join(LOOPS)}")
    main(sys.argv[1:])
