"""Sphinx extension: links names in code text to the reference, and shows the repository's own pages on the site."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

ROOT = Path(__file__).resolve().parents[1]
NAME = re.compile(r"(?:tokenweir\.)?([A-Z]\w*(?:\.\w+)*|[a-z]\w*(?=\(\)$))(?:\(\))?")
"""Code text that may name a public object: `Tokenizer`, `Tokenizer.encode`, `Tokenizer.encode()`, `chat()`."""

INCLUDE = re.compile(r"```\{include\} \.\./([A-Z]+\.md)\n```\n")
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|#)([^)]+)\)")
PAGES = {"CONTRIBUTING.md": "contributing.md", "ARCHITECTURE.md": "architecture.md", "CHANGELOG.md": "changelog.md"}


class LinkNames(SphinxPostTransform):
    """Make code text that names a documented object a link to it; a field without an entry links to its class."""

    default_priority = 5

    def run(self, **kwargs: Any) -> None:
        """Replace the literals of the document."""
        for literal in list(self.document.findall(nodes.literal)):
            if found := NAME.fullmatch(literal.astext()):
                self._link(literal, found[1])

    def _link(self, literal: nodes.literal, name: str) -> None:
        objects = self.env.domains.python_domain.objects
        target = next(
            (each for each in (f"tokenweir.{name}", f"tokenweir.{name.partition('.')[0]}") if each in objects), None
        )
        parent, inside = literal.parent, False
        while parent is not None and not inside:
            inside = isinstance(parent, nodes.reference | nodes.title) or target in parent.get("ids", ())
            parent = parent.parent
        if target is not None and not inside:
            entry = objects[target]
            text = literal.deepcopy()
            builder = self.app.builder
            literal.replace_self(
                make_refnode(builder, self.env.current_document.docname, entry.docname, entry.node_id, text, target)
            )


def include_page(app: Any, docname: str, source: list[str]) -> None:
    """Put a page of the repository in place of a page's `include`; links to files that the site lacks become text."""
    if found := INCLUDE.search(source[0]):
        path = ROOT / found[1]
        app.env.note_dependency(str(path))

        def link(match: re.Match[str]) -> str:
            there = PAGES.get(match[2], match[2].removeprefix("docs/"))
            return f"[{match[1]}]({there})" if there in PAGES.values() or (ROOT / "docs" / there).exists() else match[1]

        source[0] = source[0].replace(found[0], LINK.sub(link, path.read_text("utf-8")))


def mend_first_sentence(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Give a property's first sentence back its beginning: napoleon takes the words before a colon for the type."""
    if what in ("attribute", "data", "property") and lines and lines[-1].startswith(":type: "):
        lines[0] = f"{lines.pop().removeprefix(':type: ')}: {lines[0]}"


def setup(app: Any) -> dict[str, bool]:
    """Register all of it with Sphinx."""
    app.add_post_transform(LinkNames)
    app.connect("source-read", include_page)
    app.connect("autodoc-process-docstring", mend_first_sentence, priority=600)  # napoleon has 500
    return {"parallel_read_safe": True, "parallel_write_safe": True}
