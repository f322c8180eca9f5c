"""Table 1 of BlockBPE (You, 2025) on GSM8K and AGIEval: prompts, how far ids are from those of HuggingFace, and what the
paper has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from shared.agieval import AGIEVAL, EXAMS
from shared.texts import gsm8k

Problem = dict[str, str]
Ids = Sequence[Sequence[int]]


def _solved(problem: Problem) -> str:
    return f"Question: {problem['question']}\nAnswer: {problem['answer']}\n\n"


def _harness(problem: Problem, before: Sequence[Problem]) -> str:
    return "".join(map(_solved, before)) + f"Question: {problem['question']}\nAnswer:"


FORMS: dict[str, Callable[[Problem, Sequence[Problem]], str]] = {
    "question": lambda problem, _: problem["question"],
    "question, line feed, answer": lambda problem, _: f"{problem['question']}\n{problem['answer']}",
    '"Question: …\\nAnswer:"': lambda problem, _: _harness(problem, ()),
    "the same, after five solved": _harness,
}

PAPER = {"MMLU": 0.999, "GPQA": 0.989, "GSM8K": 0.989, "AGIEval": 0.998}
"""Similarity in Table 1."""


def prompts() -> dict[str, list[str]]:
    """The prompts of each form; AGIEval's if its texts are there."""
    problems = gsm8k()
    five_before = [(problems[-5:] + problems)[i : i + 5] for i in range(len(problems))]
    made = {
        f"GSM8K, {form}": [make(problem, before) for problem, before in zip(problems, five_before, strict=True)]
        for form, make in FORMS.items()
    }
    if AGIEVAL.exists():
        made |= {f"AGIEval, {language}": exam.prompts() for language, exam in EXAMS.items()}
        made["AGIEval, all"] = [text for language in EXAMS for text in made[f"AGIEval, {language}"]]
    return made


def similarities(theirs: Ids, ours: Ids, lengths: Sequence[int]) -> float:
    """The mean of 1 - distance / length."""
    from rapidfuzz.distance import Levenshtein  # which the sections that compare nothing do without

    pairs = zip(theirs, ours, lengths, strict=True)
    return float(np.mean([1 - Levenshtein.distance(left, right) / length for left, right, length in pairs]))
