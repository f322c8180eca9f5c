"""Adapters for transformers: `model.generate` as an engine, and deltas from its `streamer`.

A streamer is any object with `put` and `end`, so `ChatStreamer` does not import transformers. It was verified
with transformers 5.23, with PyTorch 2.15 on the CPU.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from pathlib import Path
from queue import Full, Queue
from threading import Event, Thread
from typing import Any, Unpack

from tokenweir.encode.errors import EngineError
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.decode.options import DecoderOptions
from tokenweir.stream.engines.grammar_mask import FIELDS, GrammarMask
from tokenweir.stream.engines.protocol import refuse_seed, refuse_several, refuse_unsupported
from tokenweir.stream.engines.sync import SyncEngine
from tokenweir.stream.events.deltas import Delta
from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.events.step import EngineStep


class ChatStreamer:
    """Streamer that decodes while `generate` runs. Pass it twice, because it is also the stopping criterion.

        streamer = ChatStreamer(tokenizer, show, stop=["\\n\\n"])
        model.generate(input_ids, streamer=streamer, stopping_criteria=[streamer])

    It can decode several answers in turn: each begins with the prompt, which `generate` passes first. `generate`
    blocks; to read deltas in an event loop, run it in a thread.

    Attributes:
        decoder: The decoder of the current answer.

    """

    def __init__(
        self, tokenizer: Tokenizer, emit: Callable[[list[Delta]], object], **options: Unpack[DecoderOptions]
    ) -> None:
        """Make a streamer.

        Args:
            tokenizer: The tokenizer of the model.
            emit: Called in `generate`'s thread with every list of deltas that is not empty; the last has the `Finish`.
            options: See `DecoderOptions`. `max_tokens` should equal `generate`'s `max_new_tokens`, to detect answers
                that were truncated.

        Raises:
            TokenIdError: An id among the options is outside the vocabulary.
            ValueError: An option has an invalid value.

        """
        self._emit = emit
        self.decoder = ChatDecoder(tokenizer, **options)

    def put(self, value: Any) -> None:
        """Process the ids that `generate` passes: a prompt, of shape (1, n), or new ids, of shape (k,).

        Raises:
            ValueError: There is more than one answer.
            TokenIdError: An id is outside the vocabulary.

        """
        if value.ndim > 1:
            if len(value) > 1:
                raise ValueError(f"a streamer takes one answer; generate() makes a batch of {len(value)}")
            self.decoder.reset(value[0].tolist())
        elif deltas := self.decoder.feed(value.tolist()):
            self._emit(deltas)

    def end(self) -> None:
        """Emit the held text, and the `Finish` if it has not been emitted."""
        if deltas := self.decoder.finish():
            self._emit(deltas)

    def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> bool:
        """Return whether the answer has ended, as a stopping criterion of `generate`."""
        return self.decoder.finished


DEFAULT_MAX_TOKENS = 512


class TransformersEngine:
    """Engine over a model of transformers.

    Sampling: `temperature`, `top_p`, `top_k`, `min_p`, `repetition_penalty`, `logit_bias`, `max_tokens` (512 if None),
    `min_tokens`, `ignore_eos` and `stop_token_ids` are honoured. Decoding is greedy if `temperature`, `top_p`, `top_k`
    and `min_p` are None. `seed` is refused unless decoding is greedy, because PyTorch seeds the whole process. With
    `grammars`, `json_schema` and `grammar` (llguidance's Lark) are honoured, too; the answer then ends where its
    grammar does.

    Closing the generator ends the generation at the model's next token.
    """

    supports: frozenset[str] = frozenset(
        {"temperature", "top_p", "top_k", "min_p", "seed", "repetition_penalty", "logit_bias"}
    )

    def __init__(self, model: Any, *, grammars: Any = None) -> None:
        """Make an engine from a model.

        Args:
            model: A model with `generate`, or its folder, which is loaded as `AutoModelForCausalLM`.
            grammars: The model's tokenizer as an `llguidance.LLTokenizer`, which
                `tokenweir.integrations.grammars.to_llguidance` makes; None refuses `json_schema` and `grammar`.

        Raises:
            EngineError: transformers or PyTorch is not installed, or the folder does not hold a usable model.

        """
        self._model = load_model(Path(model)) if isinstance(model, str | Path) else model
        eos = self._model.generation_config.eos_token_id
        self.eos_ids: tuple[int, ...] = tuple(eos) if isinstance(eos, list | tuple) else () if eos is None else (eos,)
        self.context_size: int | None = getattr(self._model.config, "max_position_embeddings", None)
        self._grammars = grammars
        if grammars is not None:
            self.supports = self.supports | set(FIELDS)
        self._engine = SyncEngine(self._steps)

    def generate(
        self, prompt_ids: Sequence[int], sampling: Sampling
    ) -> AsyncGenerator[Sequence[int] | EngineStep, None]:
        """Generate from `prompt_ids`, one id a step; the end token is the last id.

        Raises:
            EngineError: A field cannot be honoured, or the model fails.

        """
        return self._engine.generate(prompt_ids, sampling)

    def _steps(self, prompt_ids: Sequence[int], sampling: Sampling) -> Iterator[EngineStep]:
        options = self._options(sampling)
        if sampling.max_tokens == 0:
            return
        end_ids = {*(() if sampling.ignore_eos else self.eos_ids), *sampling.stop_token_ids}
        steps = _Steps()
        thread = Thread(target=steps.run, args=(self._model, prompt_ids, options), daemon=True)
        thread.start()
        try:
            for count, token_id in enumerate(steps, 1):
                reason = "length" if count == options["max_new_tokens"] else None
                yield EngineStep([token_id], None, "stop" if token_id in end_ids else reason)
        finally:
            steps.closed.set()
            thread.join()

    def _options(self, sampling: Sampling) -> dict[str, Any]:
        refuse_unsupported("transformers", sampling, self.supports)
        refuse_several("transformers", sampling)
        chosen = {
            name: value
            for name in ("temperature", "top_p", "top_k", "min_p")
            if (value := getattr(sampling, name)) is not None
        }
        greedy = not chosen or chosen.get("temperature") == 0 or chosen.get("top_k") == 1
        if not greedy:
            refuse_seed("PyTorch", sampling)
        most = DEFAULT_MAX_TOKENS if sampling.max_tokens is None else sampling.max_tokens
        options: dict[str, Any] = {"max_new_tokens": most, "do_sample": not greedy}
        if not greedy:
            options |= {"temperature": 1.0, "top_p": 1.0, "top_k": 0} | chosen  # overrides the model folder's defaults
        if sampling.repetition_penalty is not None:
            options["repetition_penalty"] = sampling.repetition_penalty
        if sampling.logit_bias:
            options["sequence_bias"] = {(token_id,): float(bias) for token_id, bias in sampling.logit_bias.items()}
        # Under ignore_eos the end tokens are suppressed, because `generate` cannot continue past one.
        least = most if sampling.ignore_eos else min(sampling.min_tokens, most)
        if least:
            options["min_new_tokens"] = least
        if sampling.json_schema is not None or sampling.grammar is not None:
            mask = GrammarMask(self._grammars, sampling)
            options |= {"logits_processor": [mask], "stopping_criteria": [mask.ends]}
        if ends := [*self.eos_ids, *sampling.stop_token_ids]:
            options |= {"eos_token_id": ends, "pad_token_id": ends[0]}
        return options


class _Steps:
    """Streamer and stopping criterion for one `generate` that runs in a thread; iterating over it yields the ids.

    The buffer has room for one id.
    """

    def __init__(self) -> None:
        self.closed = Event()
        self._items: Queue[int | BaseException | None] = Queue(1)
        self._prompt = True

    def run(self, model: Any, prompt_ids: Sequence[int], options: dict[str, Any]) -> None:
        """Run `generate` to its end; the target of a thread. A failure is an `EngineError` where the ids are read."""
        try:
            inputs = prompt_tensor(model, prompt_ids)
            criteria = [self, *options.pop("stopping_criteria", ())]
            model.generate(**inputs, streamer=self, stopping_criteria=criteria, **options)
        except BaseException as error:  # noqa: BLE001 - raised where the ids are read
            self._give(EngineError(f"transformers failed: {type(error).__name__}: {error}"))
        else:
            self._give(None)

    def put(self, value: Any) -> None:
        """Take what `generate` passes: ignore the first value, the prompt, and hand on the ids of the others."""
        if self._prompt:
            self._prompt = False
            return
        for token_id in value.reshape(-1).tolist():
            self._give(token_id)

    def end(self) -> None:
        """Do nothing, because `run` reports the end and failures."""

    def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> bool:
        """Return whether `generate` is to stop, because the reader has closed; a stopping criterion."""
        return self.closed.is_set()

    def __iter__(self) -> Iterator[int]:
        while (item := self._items.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item

    def _give(self, item: int | BaseException | None) -> None:
        while not self.closed.is_set():
            try:
                self._items.put(item, timeout=0.05)
                return
            except Full:
                continue


def load_model(folder: Path) -> Any:
    """Load the model in a folder as `AutoModelForCausalLM`, for inference; nothing is downloaded.

    Raises:
        EngineError: transformers or PyTorch is not installed, or the folder does not hold a usable model.

    """
    try:
        import torch  # noqa: F401
        from transformers import AutoModelForCausalLM
    except ModuleNotFoundError as error:
        raise EngineError(f"the transformers engine needs {error.name}: pip install transformers torch") from error
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(str(folder), local_files_only=True)
        return model.eval()
    except (OSError, ValueError, RuntimeError) as error:
        raise EngineError(f"{folder}: transformers cannot load the model: {error}") from error


def prompt_tensor(model: Any, prompt_ids: Sequence[int]) -> dict[str, Any]:
    """Return the ids and their mask as arguments of `generate`: tensors of shape (1, n), on the model's device."""
    import torch

    ids = torch.tensor([list(prompt_ids)], device=model.device)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
