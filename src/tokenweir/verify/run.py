"""The comparison of one model with the reference libraries, part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import Random
from typing import TypeVar

from tokenweir.encode.errors import TextError, TokenweirError
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.templates.chat_template import ChatTemplate
from tokenweir.verify import adversarial
from tokenweir.verify.comparison import (
    Difference,
    decode_differences,
    encode_differences,
    random_ids,
    shrunk,
)
from tokenweir.verify.conversations import CONVERSATIONS
from tokenweir.verify.prompts import TransformersTemplate, render_difference, shrunk_render
from tokenweir.verify.references import Reference, reference_of
from tokenweir.verify.texts import Conversation, read_pieces

T = TypeVar("T")

BATCH = 200
"""Built-in strings and lists of ids that are compared at once."""
SHORT = 1 << 17
"""A longer text, in characters, is shown as it is: the search for a smaller one would take too long."""


@dataclass
class Part:
    """The result for one kind of input.

    Attributes:
        name: "built-in strings", or a file's path.
        items: The number of texts, lists of ids, or conversations.
        characters: The characters of the texts.
        differences: The number of results that differ.
        example: The first difference, made smaller.
        place: Where it was found: a file and a line, or the kind of string.
        guarded: The number of prompts in which a text spells a control token, which is text here and control elsewhere.

    """

    name: str
    items: int = 0
    characters: int = 0
    differences: int = 0
    example: Difference | None = None
    place: str = ""
    guarded: int = 0

    def add(self, place: str, differences: Iterable[Difference], smaller: Callable[[Difference], Difference]) -> None:
        """Count differences; keep the first one, made smaller."""
        for difference in differences:
            self.differences += 1
            if self.example is None:
                self.example, self.place = smaller(difference), place


@dataclass
class Verification:
    """A model with its reference libraries.

    Attributes:
        tokenizer: The tokenizer.
        template: Its chat template, whose clock returns `CLOCK`; None without one.
        reference: The reference of the tokenizer; None if there is none.
        renders: The reference of the template; None if there is none.
        absent: Why something is not compared, in sentences.

    """

    tokenizer: Tokenizer
    template: ChatTemplate | None
    reference: Reference | None = None
    renders: TransformersTemplate | None = None
    absent: list[str] = field(default_factory=list)

    @property
    def libraries(self) -> list[str]:
        """The names and versions of the reference libraries."""
        return list(dict.fromkeys(one.library for one in (self.reference, self.renders) if one is not None))

    @property
    def covers(self) -> list[str]:
        """A description of all that is compared."""
        renders = ["renders of the chat template"] if self.renders is not None else []
        return ([self.reference.covers] if self.reference is not None else []) + renders

    def built_in(self, count: int, seed: str) -> Iterator[Part]:
        """Compare `count` built-in strings, a fifth as many lists of random ids, and built-in conversations.

        Each part is yielded again after each step, with its counts so far.
        """
        if self.reference is not None:
            part = Part("built-in strings")
            rng = Random(seed)
            sample = rng.sample(self.reference.ids, min(5000, len(self.reference.ids)))
            vocabulary = list(filter(None, (self.tokenizer.decode([i]) for i in sample)))
            special = self.reference.special_tokens
            kinds = adversarial.strings(count, seed=seed, special_tokens=special, vocabulary=vocabulary)
            for kind, texts in kinds.items():
                for some in _batches(texts):
                    self._texts(part, [kind] * len(some), some)
                    yield part
            part = Part("random ids")
            for rows in _batches(random_ids(seed, self.reference, count // 5)):
                part.items += len(rows)
                part.add("", decode_differences(self.tokenizer, self.reference, rows), self._smaller)
                yield part
        if self.template is not None and self.renders is not None:
            part = Part("built-in conversations")
            for name, conversation in CONVERSATIONS.items():
                self._conversation(part, name, Conversation(*conversation))
                yield part

    def file(self, path: Path) -> Iterator[tuple[Part, int]]:
        """Compare the texts and conversations of a file; yield the result so far and the bytes of each step.

        Raises:
            OSError: The file cannot be read.
            TextError: A line is not a text or a conversation.

        """
        part = Part(str(path))
        for piece in read_pieces(path):
            pairs = list(zip(piece.places, piece.items, strict=True))
            texts = [(place, item) for place, item in pairs if isinstance(item, str)]
            for place, item in pairs:
                if not isinstance(item, str):
                    if self.template is None:
                        raise TextError(f"{place}: a conversation, and the model has no chat template")
                    self._conversation(part, place, item)
            if texts:
                self._texts(part, [place for place, _ in texts], [text for _, text in texts])
            yield part, piece.size

    def _texts(self, part: Part, places: Sequence[str], texts: Sequence[str]) -> None:
        part.items += len(texts)
        part.characters += sum(map(len, texts))
        if self.reference is None:
            return
        for difference in encode_differences(self.tokenizer, self.reference, texts):
            known = isinstance(difference.given, str) and difference.given in texts
            place = places[texts.index(difference.given)] if known else f"{places[0]} and below"
            part.add(place, [difference], self._smaller)

    def _conversation(self, part: Part, place: str, conversation: Conversation) -> None:
        assert self.template is not None
        part.items += 1
        if self.renders is None:
            return
        template, renders = self.template, self.renders
        difference = render_difference(template, renders, conversation)
        if difference is not None:
            part.add(place, [difference], lambda found: shrunk_render(template, renders, found))
        try:
            prompt = template.render(conversation.messages, **conversation.variables)
        except TokenweirError:
            return
        part.characters += len(prompt.text)
        part.guarded += bool(prompt.guarded_for(self.tokenizer))
        if self.reference is not None:
            part.add(place, encode_differences(self.tokenizer, self.reference, [prompt.text]), self._smaller)

    def _smaller(self, difference: Difference) -> Difference:
        assert self.reference is not None
        return shrunk(self.tokenizer, self.reference, difference) if 0 < len(difference.given) < SHORT else difference


def prepare(path: Path, tokenizer: Tokenizer, template: ChatTemplate | None) -> Verification:
    """Load the reference libraries of a model.

    Args:
        path: The tokenizer's file.
        tokenizer: The tokenizer that was read from it.
        template: The model's chat template.

    """
    found = Verification(tokenizer, template)
    try:
        found.reference = reference_of(path, tokenizer)
    except ImportError as error:
        found.absent.append(f"ids and texts are not compared: {error.name} is not installed")
    except TokenweirError as error:
        found.absent.append(f"ids and texts are not compared: {error}")
    if template is None:
        found.absent.append("the model has no chat template")
    else:
        try:
            found.renders = TransformersTemplate(template.source, template.special_tokens)
        except ImportError as error:
            found.absent.append(f"the chat template is not compared: {error.name} is not installed")
    return found


def _batches(items: Iterable[T]) -> Iterator[list[T]]:
    iterator = iter(items)
    while some := list(islice(iterator, BATCH)):
        yield some
