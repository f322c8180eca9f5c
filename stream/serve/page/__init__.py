"""The chat page: plain files, without a build step, and the policy under which a browser runs them.

A file a subject. `app.js` brings the others together. `chat.js` has what can be done with a conversation, `branches.js` its
branches, `edit.js` the form of an edit; `list.js` is the list of conversations, `conversation.js` one as data, `store.js`
where they are kept. `composer.js` is the box for messages, `images.js` their images. `answer.js` is an answer, `growing.js`
Markdown that grows, `markdown.js` and `math.js` Markdown to nodes, `formulas.js` and `highlight.js` formulas and code.
`tokens.js` is the token view, `settings.js` what requests ask for, `shortcuts.js` the keys. `connection.js` is the
websocket, `server.js` the way to the server, `dom.js` elements and icons, `follow.js` keeps the end in sight. The styles
are the frame (`page.css`), messages, answers and dialogs. `vendor/` holds markdown-it and KaTeX with their licences.
"""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath
from typing import NamedTuple


class File(NamedTuple):
    """A file of the page."""

    content: bytes
    media_type: str


_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}


def _files(folder: Traversable, prefix: str = "") -> dict[str, File]:
    found: dict[str, File] = {}
    for entry in folder.iterdir():
        name = prefix + entry.name
        media_type = _MEDIA_TYPES.get(PurePosixPath(name).suffix)
        if media_type is not None:
            found[name] = File(entry.read_bytes(), media_type)
        elif entry.is_dir():
            found |= _files(entry, f"{name}/")
    return found


PAGE: dict[str, File] = _files(files(__name__))
"""The files by their names; `index.html` is the page."""

PAGE_POLICY: str = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; font-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""The header Content-Security-Policy: the server's own scripts, styles and fonts only, no connection but home, and no text that
becomes markup or script."""
