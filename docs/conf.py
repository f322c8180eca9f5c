"""Configuration of Sphinx, which `scripts/docs` runs."""

import importlib.metadata
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import inventories  # beside this file

project = "tokenweir"
copyright = "the tokenweir authors"
release = importlib.metadata.version("tokenweir")
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
    "links",
    "sphinx_copybutton",
    "sphinx_llm.txt",
]
exclude_patterns = ["deploy"]
llms_txt_description = "An exact and fast tokenizer, chat template engine and streaming decoder: messages in, prompt ids out; ids back, clean text out."
llms_txt_suffix_mode = "replace"  # guide.md beside guide.html
llms_txt_suppress_unknown_node_warnings = True
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["code.css"]
html_title = f"tokenweir {release}"

myst_heading_anchors = 3

default_role = "code"  # as docstrings use it; `links` makes links of names
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_member_order = "bysource"
autodoc_mock_imports = ["cupy", "ctranslate2", "transformers"]
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True

intersphinx_mapping = inventories.write(HERE.parent / "build" / "inventories")

nitpicky = True  # a type without an entry is a warning, and so an error
nitpick_ignore_regex = [
    ("py:class", "Delta"),  # a union; its page has each of its classes
    ("py:class", r"(.*\.)?T"),  # type variables
    (
        "py:class",
        r"(.*\.)?(StageRunner|Cancellable|EngineFrontEnd|Responses|Ledger|Kept|ToolSchemas)",
    ),  # objects that only the package makes
    (
        "py:class",
        r"tokenweir\.templates\._native\.(Messages|Rendering|Utf8)|History|Side|numpy\.uint8",
    ),  # compiled, or names of literals
    ("py:class", r"(llguidance|outlines_core|xgrammar)\..*"),  # libraries without an inventory
]
