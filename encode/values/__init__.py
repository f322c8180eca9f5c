"""Values of calls: the texts (`texts.py`) and ids (`ids.py`) that callers pass, and the results of encoding (`encoded.py`)."""
