"""What may reach a terminal: text that shows, and no text that acts.

Model output, tokens and file names are untrusted. A terminal obeys control characters: an escape sequence can recolour
the screen, set the window's title, fill the clipboard (OSC 52) or answer as if the user had typed; a carriage return
can overwrite a line already read; a bidirectional override can show words in another order than they have.

`visible` replaces each such character by a visible sign, one by one and without state. A sequence that arrives in two
pieces is therefore as harmless as one that arrives whole: its first character never gets through.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TextIO

# C0 but line feed and tab: the Control Pictures block has one sign for each, in the same order.
_SIGNS = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"}
_SIGNS[0x7F] = "␡"
# C1 (8-bit escape sequences), and Unicode's bidirectional marks, embeddings, overrides and isolates: no signs exist.
_SIGNS |= {code: f"\\x{code:02x}" for code in range(0x80, 0xA0)}
_SIGNS |= {code: f"\\u{code:04x}" for code in (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))}

DIM, PLAIN = "\x1b[2m", "\x1b[0m"


def visible(text: str) -> str:
    r"""Replace what a terminal would obey by what it can show.

    Line feeds and tabs stay. `\x1b` becomes `␛`, other C0 controls their signs likewise; C1 controls and bidirectional
    controls become escapes such as `\x9b` and `\u202e`. `visible(a) + visible(b) == visible(a + b)`.
    """
    return text.translate(_SIGNS)


def controllable(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Tell whether `stream` obeys escape codes: a terminal that is not dumb."""
    return stream.isatty() and environ.get("TERM", "dumb") != "dumb"


def styled(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Tell whether `stream` is to have colours: it obeys escape codes, and nobody set `NO_COLOR` (no-color.org)."""
    return controllable(stream, environ) and not environ.get("NO_COLOR")


def dim(text: str, style: bool) -> str:
    """Make `text` visible, and dim where the terminal takes it."""
    return f"{DIM}{visible(text)}{PLAIN}" if style else visible(text)
