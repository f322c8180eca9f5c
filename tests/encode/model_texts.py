"""Texts for models of subwords, as they come to the model: lines of the corpora, and fragments joined at random."""

from __future__ import annotations

import random

FRAGMENTS = [
    *(
        " ",
        "  ",
        "▁",
        "▁▁▁",
        "\n",
        "\n\n",
        "\t",
        "é",
        "e\u0301",
        "👨‍👩‍👧",
        "가",
        "\u1100\u1161",
        "\0",
        "\ufffd",
        "it's",
    ),
    *("日本", "<s>", "<0x41>", "12", "</div>", "aaaaaaaa", "😀", "𝔘", "def ", "The quick", "naïve", "\u200d", "ﬁ"),
]


def lines(data, seed, *, characters, count):
    """Return the lines of the first `characters` of a Japanese text and of twice as many of one with emoji, and `count` random texts."""
    texts = data("corpora/emoji-rich.txt").read_text(encoding="utf-8")[: 2 * characters].splitlines()
    texts += data("corpora/ja-wagahai-neko.txt").read_text(encoding="utf-8")[:characters].splitlines()
    pick = random.Random(seed)
    texts += ["".join(pick.choices(FRAGMENTS, k=pick.randint(1, 40))) for _ in range(count)]
    return [text for text in texts if text]


def random_text(pick, letters, others):
    """Return a random text of a model's letters, sometimes with one of `others` or with runs of the first letter."""
    length = pick.randint(1, 12) if pick.random() < 0.8 else pick.randint(13, 150)
    pool = letters + [pick.choice(others)] * (pick.random() < 0.4) + letters[:1] * pick.choice([0, 0, 0, 6])
    return "".join(pick.choice(pool) for _ in range(length))


def encoded(model, text):
    """Return a text's ids, and their (start, end) offsets."""
    ids, offsets = model.encode(text)
    return ids, list(map(tuple, offsets.tolist()))


def cut(model, text, guarded=False):
    """Return the ids of a text that the model cuts at safe places, concatenated."""
    return [token_id for part in model.encode_cut(text, guarded) for token_id in part]
