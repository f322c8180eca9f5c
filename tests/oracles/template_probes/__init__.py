"""Small templates about one rule of the language each; transformers' environment says what they render.

A file has the probes of a topic, by subject. No expected text stands there. A probe that fails in that environment must fail in
every other engine as well. All render the variables of `variables.json`; `left_out.toml` has what the native engine refuses.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


VARIABLES: dict[str, Any] = json.loads((_FOLDER / "variables.json").read_text(encoding="utf-8"))
LEFT_OUT, REFUSED_BY_BOTH = _read("left_out").values()
TOPICS = sorted(path.stem for path in _FOLDER.glob("*.toml") if path.stem != "left_out")


def probes() -> Iterator[tuple[str, str]]:
    """Yield the name and the template source of each probe."""
    for topic in TOPICS:
        for subject, sources in _read(topic).items():
            for number, source in enumerate(sources):
                yield f"{topic}: {subject} {number}", source
