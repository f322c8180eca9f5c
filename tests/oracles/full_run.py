"""Share of a property that a run checks: a slice, or with TOKENWEIR_FULL=1 all of it, as in `scripts/check --full`.

EXAMPLES sets how many examples each property test draws.
"""

from __future__ import annotations

import os

FULL = os.environ.get("TOKENWEIR_FULL") == "1"
EXAMPLES = int(os.environ.get("EXAMPLES", "500" if FULL else "20"))


def share(cases: int) -> int:
    """Return the number of random cases that a run tries: all of them, or every twelfth."""
    return cases if FULL else -(-cases // 12)
