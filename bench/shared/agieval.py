"""AGIEval's problems as its zero-shot prompts, those that its own loader of datasets makes.

The texts are not here, since some are for research only: `TOKENWEIR_AGIEVAL` names their folder, data/v1 of its repository.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from shared.report import DATA

AGIEVAL = Path(os.environ.get("TOKENWEIR_AGIEVAL") or DATA / "agieval")
NO_AGIEVAL = "AGIEval is not measured: TOKENWEIR_AGIEVAL names no folder with its texts (data/v1)."


class Exam(NamedTuple):
    """A language of AGIEval: its files, and the words of its prompts."""

    files: tuple[str, ...]
    question: str
    options: str
    choose: str
    answer: str

    def prompt(self, problem: dict[str, Any]) -> str:
        """The prompt of a problem, with options or without."""
        asked = f"{problem['passage'] or ''}{self.question}{problem['question']}"
        if not (options := problem["options"]):
            return f"{asked}\n{self.answer}"
        return f"{asked} {self.options}{' '.join(options)}\n{self.choose.format('ABCDEFG'[len(options) - 1])}"

    def prompts(self) -> list[str]:
        """Those of all its files."""
        lines = (line for name in self.files for line in (AGIEVAL / f"{name}.jsonl").open(encoding="utf-8"))
        return [self.prompt(json.loads(line)) for line in lines]


EXAMS = {
    "English": Exam(
        (
            *("lsat-ar", "lsat-lr", "lsat-rc", "logiqa-en", "sat-math", "sat-en", "sat-en-without-passage"),
            *("aqua-rat", "gaokao-english", "math"),
        ),
        *("Q: ", "Answer Choices: ", "A: Among A through {}, the answer is", "A: The answer is"),
    ),
    "Chinese": Exam(
        (
            *("logiqa-zh", "jec-qa-kd", "jec-qa-ca"),
            *(f"gaokao-{name}" for name in ("chinese", "geography", "history", "biology", "chemistry", "physics")),
            *("gaokao-mathqa", "gaokao-mathcloze"),
        ),
        *("问题：", "选项：", "答案：从A到{}, 我们应选择", "答案："),
    ),
}
