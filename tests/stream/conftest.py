"""Event loops, clients without certificates, and small byte-level tokenizers.

The tokenizers are built from their description: the ids 0 to 255 are the bytes, then words, then added tokens.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import pytest

import tokenweir.stream.decode.parsers.tools  # noqa: F401 - all blocks
from tokenweir.encode.spec import BPE, AddedToken, ByteLevel, TokenizerSpec
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.decode.parsers.blocks.stepped_block import SteppedBlock

UVLOOP = pytest.mark.skipif(find_spec("uvloop") is None, reason="uvloop is not installed")


@pytest.fixture(
    params=[
        pytest.param(("asyncio", {"use_uvloop": False}), id="asyncio"),
        pytest.param(("asyncio", {"use_uvloop": True}), id="asyncio+uvloop", marks=UVLOOP),
        pytest.param(("trio", {}), id="trio"),
    ]
)
def anyio_backend(request):
    """Event loops for the tests marked `anyio`."""
    return request.param


@pytest.fixture(scope="session", autouse=True)
def no_certificates(tmp_path_factory):
    """Point TLS at an empty folder of certificates, because reading all of them takes longer than most tests."""
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("SSL_CERT_FILE", raising=False)
        environment.setenv("SSL_CERT_DIR", str(tmp_path_factory.mktemp("certificates")))
        yield


@pytest.fixture(scope="session", autouse=True)
def checked_states():
    """Have each step of a block of tool calls checked against the block's table of states."""
    blocks = SteppedBlock.__subclasses__()
    for block in blocks:
        blocks += block.__subclasses__()
        block.STEPS = {state: _checked(step, state, block.STATES[state].then) for state, step in block.STEPS.items()}


def _checked(step, state, then):
    def checked(block, text, place, out):
        end = step(block, text, place, out)
        assert block._state in (state, *then), f"{type(block).__name__} goes from {state!r} to {block._state!r}"
        return end

    return checked


WORDS = ["Hello", " Alice", "boxes", " world", "Question:", "</", "think", "\n\n", ".\n", "?\n", "User", "日本", " 👩"]
PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
OTHERS = [byte for byte in range(256) if byte not in PRINTABLE]
ALPHABET = {byte: chr(byte) for byte in PRINTABLE} | {byte: chr(256 + n) for n, byte in enumerate(OTHERS)}


@cache
def byte_tokenizer(*added: AddedToken, eos: str | None = "<eos>", template: str | None = None) -> Tokenizer:
    """Return a tokenizer in which the ids 0 to 255 are the bytes; words follow, then `added`, then `<eos>` and `<skip>`."""
    vocab = {ALPHABET[byte]: byte for byte in range(256)}
    merges = []
    for word in WORDS:
        letters = [ALPHABET[byte] for byte in word.encode()]
        whole = letters[0]
        for letter in letters[1:]:
            if whole + letter not in vocab:
                merges.append((whole, letter))
                vocab[whole + letter] = len(vocab)
            whole += letter
    tokens = (*added, AddedToken("<eos>", special=True), AddedToken("<skip>", special=True))
    spec = TokenizerSpec(
        model=BPE(vocab=vocab, merges=merges),
        pre_tokenizer=ByteLevel(add_prefix_space=False, use_regex=False),
        decoder=ByteLevel(),
        added_tokens=tokens,
        special_roles={"eos_token": eos} if eos else {},
        chat_templates={"default": template} if template else {},
    )
    return Tokenizer.from_spec(spec)


THINK = (AddedToken("<think>"), AddedToken("</think>"))
MISTRAL = (AddedToken("[THINK]", special=True), AddedToken("[/THINK]", special=True))


@pytest.fixture(scope="session")
def make_tok():
    """The function `byte_tokenizer`, which makes a byte-level tokenizer with added tokens."""
    return byte_tokenizer


@pytest.fixture(scope="session")
def tok():
    """A tokenizer without tags in its vocabulary: `<think>` is seven ids."""
    return byte_tokenizer()


@pytest.fixture(scope="session")
def think_tok():
    """A tokenizer with the tokens `<think>` and `</think>`, which are not special, as in Qwen3."""
    return byte_tokenizer(*THINK)


@pytest.fixture(scope="session")
def mistral_tok():
    """A tokenizer with the control tokens `[THINK]` and `[/THINK]`."""
    return byte_tokenizer(*MISTRAL)
