"""Every known family of tokenizer.json is exact in everything, over a small vocabulary."""

from __future__ import annotations

import json

import pytest
from family_files import FAMILIES, family_json
from full_run import share

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.verify import adversarial, comparison, references


@pytest.fixture(params=FAMILIES)
def family(request, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(family_json(request.param)))
    return path


def test_families(family):
    tok, reference = Tokenizer.from_file(family), references.HuggingFace(family)
    vocabulary = list(filter(None, (reference.tokenizer.id_to_token(i) for i in reference.ids)))
    kinds = adversarial.strings(
        share(400), seed=family.parent.name, special_tokens=reference.special_tokens, vocabulary=vocabulary
    )
    rows = comparison.compare(
        tok, reference, kinds.items(), comparison.random_ids(family.parent.name, reference, share(200))
    )
    differences = [f"{row.kind}: {difference}" for row in rows for difference in row.differences]
    assert not differences, "\n".join(differences[:3])
