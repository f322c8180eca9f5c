"""Real model folders: ids and texts are those of `PreTrainedTokenizerFast.from_pretrained`, whatever their config says."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import transformers
from case_tables import cases
from full_run import share

import tokenweir
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.verify import adversarial

CASES = cases(__file__)

FOLDERS = CASES["folders"]
CONTROL = ["<s>", "</s>", "<|endoftext|>", "<|im_end|>", "<eos>", "<mask>", "[SEP]", "<pad>", "<|end|>", "<extra_id_0>"]
TEXTS = ["", "Hello world", *CONTROL, *(f"a {token}  {token}b" for token in CONTROL)]


def check(folder: Path, seed: str) -> None:
    ours, theirs = Tokenizer.from_file(folder), transformers.PreTrainedTokenizerFast.from_pretrained(folder)
    theirs.backend_tokenizer.no_padding()
    theirs.backend_tokenizer.no_truncation()
    assert ours.spec.special_roles == theirs.special_tokens_map
    assert {token.content: token.id for token in ours.added_tokens} == theirs.get_added_vocab()
    rng = random.Random(seed)
    drawn = adversarial.strings(share(1000), seed=seed, special_tokens=list(theirs.get_added_vocab()))
    texts = [*TEXTS, *(text for texts in drawn.values() for text in texts)]
    rows = [rng.choices(range(len(theirs)), k=8) for _ in range(share(400))]
    rows += [[i, *rng.choices(range(len(theirs)), k=2)] for i in theirs.get_added_vocab().values()]
    for text in texts:
        for special in (True, False):
            ids = theirs.encode(text, add_special_tokens=special)
            assert ours.encode(text, add_special_tokens=special) == ids, (text, special)
        rows.append(ids)
    for ids in rows:
        for skip in (True, False):
            text = theirs.decode(ids, skip_special_tokens=skip, clean_up_tokenization_spaces=False)
            assert ours.decode(ids, skip_special_tokens=skip, byte_fallback="huggingface") == text, (ids, skip)


@pytest.mark.parametrize("name", FOLDERS)
def test_a_real_folder(data, name):
    check(data(f"tokenizers/{name}"), name)


def test_the_embedded_folder():
    check(Path(tokenweir.__file__).parent / "encode" / "data", "default")
