"""The chat page: one HTML file with its styles and script inside, and the policy under which a browser runs it."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files

PAGE: bytes = files(__name__).joinpath("index.html").read_bytes()


def _policy(page: bytes) -> str:
    """The Content-Security-Policy that lets exactly this page's own script and styles run, and connect home only."""

    def hashes(tag: bytes) -> str:
        blocks = re.findall(rb"<%s>(.*?)</%s>" % (tag, tag), page, re.DOTALL)
        digests = (base64.b64encode(hashlib.sha256(block).digest()).decode() for block in blocks)
        return " ".join(f"'sha256-{digest}'" for digest in digests)

    return (
        f"default-src 'none'; script-src {hashes(b'script')}; style-src {hashes(b'style')}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


PAGE_POLICY: str = _policy(PAGE)
"""The value of the header Content-Security-Policy."""
