"""Post-processors: the ids around a text, and the trimming of offsets."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from tokenweir.encode.spec.pre_tokenizers import ByteLevel


class SpecialTokenIds(Struct, frozen=True):
    """A special token of a template: its name `id`, and the ids and the tokens that it stands for."""

    id: str
    ids: tuple[int, ...]
    tokens: tuple[str, ...] = ()


class TemplateProcessing(Struct, frozen=True, tag="TemplateProcessing"):
    """A post-processor that puts special tokens around one sequence (`single`) or two (`pair`), as templates list them.

    An item is `{"Sequence": {"id": "A", "type_id": 0}}` or `{"SpecialToken": {"id": NAME, "type_id": 0}}`. The type id is 0 by
    default.
    """

    single: tuple[Mapping[str, Mapping[str, str | int]], ...]
    pair: tuple[Mapping[str, Mapping[str, str | int]], ...] = ()
    special_tokens: Mapping[str, SpecialTokenIds] = {}

    @classmethod
    def around(cls, before: Iterable[tuple[str, int]], after: Iterable[tuple[str, int]]) -> "TemplateProcessing":
        """Return the template that puts these tokens, each (token, id), before and after a text."""
        before, after = tuple(before), tuple(after)

        def item(kind: str, name: str) -> Mapping[str, Mapping[str, str | int]]:
            return {kind: {"id": name, "type_id": 0}}

        sides = ([item("SpecialToken", name) for name, _ in side] for side in (before, after))
        single = (*next(sides), item("Sequence", "A"), *next(sides))
        special = {name: SpecialTokenIds(name, (token_id,), (name,)) for name, token_id in (*before, *after)}
        return cls(single, special_tokens=special)


class BertProcessing(Struct, frozen=True, tag="BertProcessing", forbid_unknown_fields=True):
    """BERT's post-processor: `cls` before the first sequence, and `sep` after each; both are (token, id)."""

    sep: tuple[str, int]
    cls: tuple[str, int]


class RobertaProcessing(Struct, frozen=True, tag="RobertaProcessing"):
    """RoBERTa's post-processor: `cls` before the first sequence, `sep` before a second one, and `sep` after each.

    `trim_offsets` removes white space from the offsets of tokens; `add_prefix_space` leaves them the first token's space.
    In a file, these two fields distinguish it from `BertProcessing`.
    """

    sep: tuple[str, int]
    cls: tuple[str, int]
    trim_offsets: bool
    add_prefix_space: bool


class PostProcessorSequence(Struct, frozen=True, tag="Sequence"):
    """Post-processors applied one after the other."""

    processors: tuple["PostProcessor", ...]


SinglePostProcessor = ByteLevel | TemplateProcessing | BertProcessing | RobertaProcessing
"""All post-processors except the sequence; `parts` flattens a post-processor to these."""

PostProcessor = SinglePostProcessor | PostProcessorSequence
