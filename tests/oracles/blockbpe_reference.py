"""BlockBPE's tokens by the definition: Algorithm 1 of the paper (You, "BlockBPE: Parallel BPE Tokenization", 2025).

The text is looked through for special tokens (§4.1), and each stretch between two of them becomes a list of bytes, which
are merged as one: no pattern cuts it into words.

How the algorithm is read where the paper leaves a choice:

- *"Find the pair with the lowest rank; replace its left-most occurrence."* One merge a step, then all pairs are looked at
  anew. So occurrences that overlap ("aaa") merge from the left, and a pair of lower rank that a merge creates comes before
  the other occurrences of the old one.
- *Equal ranks.* Each pair of a merge list has a rank of its own. By ranks of tokens (tiktoken) a pair has the rank of what
  it joins to, which pairs that cut one token in different places share: of those the leftmost merges first.
- *Whole words.* There is no shortcut for a text that is a token (HuggingFace's `ignore_merges`, tiktoken's first look-up).

The paper's kernel (§4.2) merges *all* occurrences of the lowest rank in one pass. That is the same only with two rules that
the paper does not give: occurrences that overlap must be taken from the left, each one behind the end of the one before;
and a pass must end at the first merge that creates a pair of a lower rank. Ranks of merges that were learned in order
seldom need the second rule. Those that a rank file implies may: the halves of a token can be rarer than the token.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise


class BlockBpeReference:
    """Reference encoder of BlockBPE by the paper's definition, in quadratic time."""

    def __init__(
        self,
        vocabulary: Mapping[bytes, int],
        merges: Sequence[tuple[bytes, bytes]] | None = None,
        special_tokens: Mapping[bytes, int] | None = None,
    ) -> None:
        """Create an encoder.

        Args:
            vocabulary: Token to id.
            merges: Pairs by rank; a pair that is there twice has its later rank. None: a pair has the id of what it joins
                to as its rank, if that is a token.
            special_tokens: Special tokens, which are searched for before merging, to ids.

        """
        self.vocabulary = vocabulary
        self.merge_ranks = None if merges is None else {pair: rank for rank, pair in enumerate(merges)}
        self.special_tokens = special_tokens or {}

    def encode(self, text: bytes) -> list[int]:
        """Return the ids of a text."""
        ids: list[int] = []
        for stretch, special in self._stretches(text):
            ids += [self.vocabulary[token] for token in self.merge(stretch)]
            if special is not None:
                ids.append(self.special_tokens[special])
        return ids

    def merge(self, text: bytes) -> list[bytes]:
        """Merge a text without special tokens by the paper's Algorithm 1; return its tokens."""
        tokens = [text[i : i + 1] for i in range(len(text))]
        while True:
            ranked = [(rank, i) for i, pair in enumerate(pairwise(tokens)) if (rank := self._rank(pair)) is not None]
            if not ranked:
                return tokens
            _, i = min(ranked)
            tokens[i : i + 2] = [tokens[i] + tokens[i + 1]]

    def _rank(self, pair: tuple[bytes, bytes]) -> int | None:
        if self.merge_ranks is None:
            return self.vocabulary.get(pair[0] + pair[1])
        return self.merge_ranks.get(pair)

    def _stretches(self, text: bytes) -> Iterator[tuple[bytes, bytes | None]]:
        """Split a text at special tokens; yield each stretch without them, and the special token behind it or None at the end.

        The leftmost special token is taken, and of those that begin at one place the longest.
        """
        begin = at = 0
        while at < len(text):
            found = max((s for s in self.special_tokens if text.startswith(s, at)), key=len, default=None)
            if found is None:
                at += 1
                continue
            yield text[begin:at], found
            begin = at = at + len(found)
        yield text[begin:], None
