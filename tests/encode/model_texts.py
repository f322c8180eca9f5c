"""Random texts for models of subwords, and their ids and offsets."""

from __future__ import annotations


def random_text(pick, letters, others):
    """Return a random text of a model's letters, sometimes with one of `others` or with runs of the first letter."""
    length = pick.randint(1, 12) if pick.random() < 0.8 else pick.randint(13, 150)
    pool = letters + [pick.choice(others)] * (pick.random() < 0.4) + letters[:1] * pick.choice([0, 0, 0, 6])
    return "".join(pick.choice(pool) for _ in range(length))


def encoded(model, text, guarded=False):
    """Return a text's ids, and their (start, end) offsets."""
    ids, offsets = model.encode(text, guarded)
    return ids, list(map(tuple, offsets.tolist()))


def cut(model, text, guarded=False):
    """Return the ids of a text that the model cuts at safe places, concatenated."""
    return [token_id for part in model.encode_cut(text, guarded) for token_id in part]
