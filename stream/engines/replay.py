"""Replay of recorded id streams with their timing: the embedded default engine."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import AsyncGenerator, Sequence
from importlib import resources
from itertools import accumulate, cycle
from pathlib import Path

import anyio
import msgspec
from anyio.lowlevel import checkpoint

from tokenweir.encode.errors import EngineError, without_path
from tokenweir.encode.files import read_regular
from tokenweir.stream.engines.protocol import check_top_k, refuse_several, refuse_unsupported
from tokenweir.stream.events.sampling import Sampling

RECORDINGS = "data/recordings"  # in the package tokenweir.stream


class Recording(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stream of ids with the delay before each id.

    Attributes:
        name: The recording's name.
        prompt: The question that it answers, for readers.
        ids: The whole answer, tags and end token included.
        waits_ms: Milliseconds between an id and the one before it; the first one counts from the request.

    """

    name: str
    prompt: str
    ids: tuple[int, ...]
    waits_ms: tuple[float, ...]

    def __post_init__(self) -> None:
        """Raise `ValueError` if `waits_ms` and `ids` differ in length, or a time is negative."""
        if len(self.ids) != len(self.waits_ms):
            raise ValueError(f"recording {self.name!r} has {len(self.ids)} ids and {len(self.waits_ms)} waits_ms")
        for position, wait in enumerate(self.waits_ms):
            if not 0 <= wait < float("inf"):
                raise ValueError(f"recording {self.name!r} waits {wait} ms before id {position}")

    @classmethod
    def from_file(cls, path: str | Path) -> Recording:
        """Read a recording: a JSON object with the attributes' names.

        Raises:
            EngineError: The file cannot be read or is not a recording; the message gives the place.

        """
        try:
            return msgspec.json.decode(read_regular(Path(path)), type=cls)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            raise EngineError(f"{path}: not a recording: {without_path(error)}") from error


def default_recordings() -> tuple[Recording, ...]:
    """Return the package's recordings over the embedded vocabulary, in the order of their names.

    Their texts were written for this project and their times drawn at random by scripts/record_demo: no model made them.
    """
    folder = resources.files("tokenweir.stream").joinpath(RECORDINGS)
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".json")), key=lambda file: file.name)
    return tuple(msgspec.json.decode(file.read_bytes(), type=Recording) for file in files)


class ReplayEngine:
    """Engine that replays recordings; there is no model.

    The prompt is ignored. Each call of `generate` plays the next recording, cyclically, or always the one whose name
    was given. Nothing is sampled: only `max_tokens` has an effect. Each id is due at its time after the request, and a
    slow reader gets all due ids at once.

    Attributes:
        recordings: The recordings, in the order of playing.
        speed: Factor by which to play faster than recorded; None plays without waiting.

    """

    supports = frozenset({"temperature", "top_k", "top_p", "seed"})  # a recording is a possible result of any of these
    runs_ahead = True  # the recorded clock runs while the generator is not polled

    def __init__(
        self, recordings: Sequence[Recording] | None = None, *, speed: float | None = 1.0, name: str | None = None
    ) -> None:
        """Make an engine from recordings.

        Args:
            recordings: The recordings; None means the package's own.
            speed: Factor by which to play faster than recorded; None or 0 plays without waiting.
            name: Play only the recording of this name.

        Raises:
            ValueError: There is no recording, no recording has this name, or `speed` is negative.

        """
        recordings = default_recordings() if recordings is None else tuple(recordings)
        if name is not None:
            known = ", ".join(recording.name for recording in recordings)
            recordings = tuple(recording for recording in recordings if recording.name == name)
            if not recordings:
                raise ValueError(f"no recording is named {name!r}; there are: {known}")
        if not recordings:
            raise ValueError("there is no recording to play")
        if speed is not None and not 0 <= speed < float("inf"):
            raise ValueError(f"speed={speed} is not a finite number of at least 0")
        self.recordings = recordings
        self.speed = speed or None
        self._turns = cycle(recordings)

    def __repr__(self) -> str:
        return f"ReplayEngine({', '.join(recording.name for recording in self.recordings)})"

    async def generate(self, prompt_ids: Sequence[int], sampling: Sampling) -> AsyncGenerator[Sequence[int], None]:
        """Play the next recording, up to `sampling.max_tokens` ids of it.

        Raises:
            EngineError: `sampling.n` is not 1, a number is out of range, or a recording cannot honour a field.

        """
        refuse_unsupported("a recording", sampling, self.supports)
        refuse_several("a recording", sampling)
        check_top_k(sampling)
        recording = next(self._turns)
        ids = recording.ids[: sampling.max_tokens]
        if self.speed is None:
            for token_id in ids:
                await checkpoint()
                yield [token_id]
            return
        start = anyio.current_time()
        times = [start + time_ms / 1000 / self.speed for time_ms in accumulate(recording.waits_ms)]
        place = 0
        while place < len(ids):
            await anyio.sleep_until(times[place])
            due = max(place + 1, bisect_right(times, anyio.current_time(), hi=len(ids)))
            yield list(ids[place:due])
            place = due
