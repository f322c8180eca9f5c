"""Untrusted text as text that shows, and acts on no terminal: for what is printed and for what is logged.

Model output, tokens, file names and the words of engines are untrusted. A terminal obeys control characters: an escape sequence
can recolour the screen, set the window's title, fill the clipboard (OSC 52) or answer as if the user had typed; a carriage
return can overwrite a line already read; a bidirectional override can show words in another order than they have.

`visible` replaces each such character by a visible sign, one by one and without state. A sequence that arrives in two
pieces is therefore as harmless as one that arrives whole: its first character never gets through.
"""

from __future__ import annotations

# By code, what a terminal obeys.
# C0 but line feed and tab: the Control Pictures block has one sign for each, in the same order.
SIGNS = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"}
SIGNS[0x7F] = "␡"
# C1 (8-bit escape sequences), and Unicode's bidirectional marks, embeddings, overrides and isolates: no signs exist.
SIGNS |= {code: f"\\x{code:02x}" for code in range(0x80, 0xA0)}
SIGNS |= {code: f"\\u{code:04x}" for code in (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))}


def visible(text: str) -> str:
    r"""Replace what a terminal would obey by what it can show.

    Line feeds and tabs stay. `\x1b` becomes `␛`, other C0 controls their signs likewise; C1 controls and bidirectional
    controls become escapes such as `\x9b` and `\u202e`. `visible(a) + visible(b) == visible(a + b)`.
    """
    return text.translate(SIGNS)
