"""Output of an answer to the terminal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tokenweir.cli.terminal.view import View
    from tokenweir.stream.events.deltas import Delta

Think = Literal["show", "dim", "hide"]


class ShownAnswer:
    """Display of one answer: it shows deltas by channel in a view, and makes a summary of tokens and time.

    Attributes:
        ids: All ids so far, those of thinking and tool calls included.

    """

    def __init__(self, view: View, think: Think, *, labelled: bool) -> None:
        """Start an answer, and the clock of `summary`.

        Args:
            view: Shows the text.
            think: What to do with thinking: "show", "dim" or "hide".
            labelled: Print a name above thinking, and above an answer that follows shown thinking or a tool call. A
                tool call always has one.

        """
        self._texts: list[str] = []
        self._view = view
        self._think = think
        self._labelled = labelled
        self._channel: str | None = None
        self._reason = "Ctrl-C"
        self._prompt_tokens = self._thinking_tokens = 0
        self.ids: list[int] = []
        self._started = time.monotonic()
        self._arrivals: list[tuple[float, int]] = []  # first and last: the time, and the tokens until then

    @property
    def text(self) -> str:
        """The text of the answer so far, as the model wrote it; without thinking and tool calls."""
        return "".join(self._texts)

    def step(self, delta: Delta) -> None:
        """Add a delta, and pass its text to the view."""
        from tokenweir.stream.events.deltas import Finish, ReasoningDelta, TextDelta

        self.ids += delta.token_ids
        if delta.token_ids:
            self._arrivals[1:] = [(time.monotonic(), len(self.ids))]
        match delta:
            case Finish(reason, stop_reason, usage):
                self._reason = str(reason) if stop_reason is None else f"{reason} at {stop_reason!r}"
                self._prompt_tokens, self._thinking_tokens = usage.prompt_tokens, usage.reasoning_tokens
            case TextDelta(text):
                self._texts.append(text)
                self._write("answer", text)
            case ReasoningDelta(text):
                if self._think != "hide":
                    self._write("thinking", text)
            case _:
                self._write("tool call", delta.name or delta.arguments)

    def _write(self, channel: str, text: str) -> None:
        if channel != self._channel:
            text = text.lstrip("\n")  # models put line feeds around their thinking
            if not text:
                return
            named = channel == "tool call" or (self._labelled and (channel, self._channel) != ("answer", None))
            self._view.open(
                channel if named else None,
                dimmed=channel == "thinking" and self._think == "dim",
                markdown=channel != "tool call",
            )
            self._channel = channel
        self._view.write(text)

    def summary(self) -> str:
        """Return a line with the number of tokens, the time to the first one, the rate, and why the answer ended."""
        thinking = f", {self._thinking_tokens} thinking" if self._thinking_tokens else ""
        parts = [f"{len(self.ids)} tokens{thinking}"]
        if self._prompt_tokens:
            parts.append(f"prompt {self._prompt_tokens}")
        if self._arrivals:
            (first, so_far), (last, total) = self._arrivals[0], self._arrivals[-1]
            parts.append(f"first token {first - self._started:.2f} s")
            if last > first:
                parts.append(f"{(total - so_far) / (last - first):.1f} tokens/s")
        return "; ".join([*parts, self._reason])
