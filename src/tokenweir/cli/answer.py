"""An answer on its way to the terminal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TextIO

from tokenweir.cli.terminal import dim, styled

if TYPE_CHECKING:
    from tokenweir.stream.events import Delta


class Answer:
    """One answer: deltas in, visible text out as they come, and at the end what it took."""

    def __init__(self, out: TextIO, think: str | None = None) -> None:
        """Begin an answer; the clock of `summary` starts.

        Args:
            out: Where it is shown.
            think: "show" thinking, "dim" or "hide" it; None means dim on a terminal that can, and hide elsewhere.

        """
        self._texts: list[str] = []
        self._out = out
        self._styled = styled(out)
        self._think = think or ("dim" if self._styled else "hide")
        self._labelled = self._think == "show" or not self._styled  # else dimness tells thinking from the answer
        self._channel: str | None = None
        self._midline = False
        self._reason = "Ctrl-C"
        self._prompt_tokens = self._tokens = self._thinking_tokens = 0
        self._started = time.monotonic()
        self._arrivals: list[tuple[float, int]] = []  # the first and the last: the time, and the tokens until then

    @property
    def text(self) -> str:
        """The answer so far, as the model gave it and without its thinking."""
        return "".join(self._texts)

    def step(self, delta: Delta) -> None:
        """Show a delta at once."""
        from tokenweir.stream.events import Finish, ReasoningDelta, TextDelta

        self._tokens += len(delta.token_ids)
        if delta.token_ids:
            self._arrivals[1:] = [(time.monotonic(), self._tokens)]
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
            if self._channel is not None:
                self._out.write("\n\n" if self._midline else "\n")
            if channel == "tool call" or (self._labelled and (channel, self._channel) != ("answer", None)):
                self._out.write(f"[{channel}]\n")
            self._channel = channel
        self._out.write(dim(text, self._styled and self._think == "dim" and channel == "thinking"))
        self._out.flush()
        self._midline = not text.endswith("\n")

    def end_line(self) -> None:
        """End the line that the answer is on."""
        if self._midline:
            self._out.write("\n")
            self._out.flush()
            self._midline = False

    def summary(self) -> str:
        """What it took, in one line."""
        thinking = f", {self._thinking_tokens} thinking" if self._thinking_tokens else ""
        parts = [f"{self._tokens} tokens{thinking}"]
        if self._prompt_tokens:
            parts.append(f"prompt {self._prompt_tokens}")
        if self._arrivals:
            (first, so_far), (last, total) = self._arrivals[0], self._arrivals[-1]
            parts.append(f"first token {first - self._started:.2f} s")
            if last > first:
                parts.append(f"{(total - so_far) / (last - first):.1f} tokens/s")
        return "; ".join([*parts, self._reason])
