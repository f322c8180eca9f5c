"""The scores of a Unigram model, read as `tokenizers` reads them: not always to the nearest float."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from full_run import share
from tokenizers import Tokenizer

from tokenweir.encode._core import HuggingFaceUnigram, json_numbers
from tokenweir.encode.errors import TokenizerFileError


def model_file(literals, pieces):
    """A tokenizer.json with scores as they are spelled here."""
    vocab = ",".join(f"[{json.dumps(piece)},{literal}]" for piece, literal in zip(pieces, literals, strict=True))
    return f'{{"model":{{"type":"Unigram","unk_id":0,"byte_fallback":false,"vocab":[{vocab}]}}}}'


def test_scores_are_read_as_the_library_reads_them():
    pick = random.Random(9)
    literals = [repr(-pick.uniform(0, 20)) for _ in range(share(30_000))]
    literals += [repr(float(np.float32(-pick.uniform(0, 20)))) for _ in range(share(30_000))]
    for _ in range(share(30_000)):
        whole = str(pick.randint(-(10 ** pick.randint(1, 25)), 10 ** pick.randint(1, 25)))
        decimals = pick.choice(["", ".0", f".{pick.randint(0, 10 ** pick.randint(1, 30))}"])
        literals.append(whole + decimals + pick.choice(["", "e-5", "E+3", "e-300", "e012", "e-330"]))
    literals += [
        "-0",
        "-0.0",
        "0e99999999999",
        "1e-99999999999",
        "1e308",
        "18446744073709551615",
        "18446744073709551616",
    ]
    literals += ["18446744073709551616.5", "-9223372036854775809", "17976931348623157e292"]
    tokenizer = Tokenizer.from_str(model_file(literals, [f"p{i}" for i in range(len(literals))]))
    expected = [score for _, score in json.loads(tokenizer.to_str())["model"]["vocab"]]
    read = json_numbers([literal.encode() for literal in literals]).tolist()
    assert list(map(repr, read)) == list(map(repr, map(float, expected)))  # repr tells 0.0 from -0.0
    assert read != list(map(float, literals))


@pytest.mark.parametrize("literal", ["", "-", "+1", "01", "-01", "1.", ".5", "1e", "1e+", "0x1", '"1"', "NaN", "1e309"])
def test_what_is_no_score(literal):
    with pytest.raises(TokenizerFileError, match="the score of piece 1 is not a number within range"):
        json_numbers([b"-1.5", literal.encode()])


def test_ties_depend_on_how_scores_are_read():
    pick = random.Random(2)
    texts = ["".join(pick.choices("abcd", k=12)) for _ in range(50)]
    changed = 0
    for _ in range(share(600)):
        pieces = ["<unk>", *"abcd", *sorted({"".join(pick.choices("abcd", k=pick.randint(2, 4))) for _ in range(15)})]
        single = [repr(float(np.float32(-pick.uniform(0, 20)))) for _ in range(2)]
        literals = [pick.choice(single) for _ in pieces]
        tokenizer = Tokenizer.from_str(model_file(literals, pieces))
        scores = json_numbers([literal.encode() for literal in literals])
        model = HuggingFaceUnigram(pieces, scores, 0, False, [])
        nearest = HuggingFaceUnigram(pieces, np.array(literals, dtype=np.float64), 0, False, [])
        for text in texts:
            expected = tokenizer.encode(text).ids
            assert model.encode(text)[0] == expected
            changed += nearest.encode(text)[0] != expected
    assert changed > 0
