"""The chat page: plain files, without a build step, and the policy under which a browser runs them.

`index.html` is the page and `app.js` brings its parts together. `connection.js` is the websocket and `server.js` the way to the
server: other pages may import both. `settings.js` has what requests ask for, `shortcuts.js` the keys, `follow.js` keeps the end in
sight, and `dom.js` makes elements and icons. The styles are the frame (`page.css`), the dialogs, and one file in each room.

    answer/        an answer (`answer.js`), Markdown and text that grow (`growing.js`, `growing-text.js`), Markdown to nodes, formulas, colours of code
    composer/      the box for messages, and their files: images and texts
    conversation/  what can be done with a conversation (`chat.js`), its messages, the answer that it awaits (`turn.js`) and the
                   connection for that, its branches and edits; one as data (`conversation.js`), the list of them, and the
                   database that keeps them (`store.js`)
    tokens/        the token view
    vendor/        markdown-it, its plugin for footnotes, and KaTeX, with their licences
"""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath
from typing import NamedTuple


class File(NamedTuple):
    """A file of the chat page: its bytes and its media type."""

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
