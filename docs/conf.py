"""How Sphinx builds these pages: `scripts/docs`."""

import importlib.metadata

project = "tokenweir"
copyright = "the tokenweir authors"
release = importlib.metadata.version("tokenweir")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = f"tokenweir {release}"

myst_heading_anchors = 3

default_role = "code"  # as docstrings use it
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_member_order = "bysource"
autodoc_mock_imports = ["cupy", "ctranslate2", "transformers"]
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
