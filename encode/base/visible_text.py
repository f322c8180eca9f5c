"""Makes control characters in untrusted text visible, so that they have no effect on a terminal or in a log.

Model output, tokens, file names and messages of engines are untrusted. A terminal obeys control characters: an escape sequence
can recolour the screen, set the window's title, fill the clipboard (OSC 52) or answer as if the user had typed; a carriage
return can overwrite a line already read; a bidirectional override can show words in another order than they have.

`visible` replaces each such character by a visible sign, one by one and without state. A sequence that arrives in two
pieces is therefore as harmless as one that arrives whole: its first character never gets through.
"""

from __future__ import annotations

# C0 except line feed and tab: the Control Pictures block has one sign for each, in the same order.
SIGNS = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"}
SIGNS[0x7F] = "␡"
# C1 (8-bit escape sequences), and Unicode's bidirectional marks, embeddings, overrides and isolates: no signs exist.
SIGNS |= {code: f"\\x{code:02x}" for code in range(0x80, 0xA0)}
SIGNS |= {code: f"\\u{code:04x}" for code in (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))}


def visible(text: str) -> str:
    r"""Replace control characters by visible signs.

    Line feeds and tabs stay. `\x1b` becomes `␛`, other C0 controls their signs likewise; C1 controls and bidirectional
    controls become escapes such as `\x9b` and `\u202e`. `visible(a) + visible(b) == visible(a + b)`.
    """
    return text.translate(SIGNS)
