"""Attacks on the origins of rendered text: every field, every template, control tokens whole, in halves and in seams.

    python bench/origins.py [--every 1] [--random 0] [--seed 0] [--benign 30000] [--jobs 1] [--write]

An attack succeeds if the text of a user makes a control token that is wholly the template's, if a character of the user's
has another origin than its field, or if the guard's search says otherwise than the origins. `--random` adds as many attacks on
each template that spread tokens over several fields, other ones for each seed. Benign conversations are rendered by
transformers too: those that it renders are counted as refused if the engine refuses them.
TOKENWEIR_TEMPLATES names a folder of more templates. --write puts the tables into docs/explanation/injections.md.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.metadata import version
from itertools import islice

from attacks import benign
from shared.report import ROOT, arguments, machine, publish, table

sys.path.append(str(ROOT / "tests" / "oracles"))

from jinja_oracle import expected
from native_rendering import check_origins, outcome, rendered
from origin_attacks import Tally, Target, attacks, random_attacks
from template_files import template_files

from tokenweir.templates._native import Template


def attack(named: tuple[str, str], every: int, spread: int, seed: int) -> tuple[Tally, Tally]:
    """Attack one template: one in `every` of the listed attacks, none for 0, and then `spread` random ones."""
    target, listed, drawn = Target(*named), Tally(), Tally()
    for texts in islice(attacks(target), 0, None, every) if every else ():
        target.attack(texts, listed)
    for texts in islice(random_attacks(target, random.Random(f"{seed} {target.name}")), spread):
        target.attack(texts, drawn)
    return listed, drawn


def compare(sources: dict[str, str], wanted: int) -> Counter[str]:
    """Render benign conversations by both engines."""
    random_ = random.Random(11)
    templates = {name: Template(source) for name, source in sources.items()}
    counts: Counter[str] = Counter()
    while counts["rendered by transformers"] < wanted:
        name = random_.choice(list(sources))
        variables = benign(random_) | {"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": True}
        reference = expected(sources[name], variables)
        if reference.text is None:
            continue
        counts["rendered by transformers"] += 1
        ours = outcome(templates[name], variables)
        if ours.text is None:
            counts["refused"] += 1
            print(f"refused: {name}: {ours.error}", file=sys.stderr)
            continue
        counts["text differs"] += ours.text != reference.text
        check_origins(rendered(templates[name], variables), variables)
    return counts


def main() -> None:
    """Attack, compare and print."""
    options = arguments(
        __doc__,
        every=(1, "try one in so many of the listed attacks, 0: none"),
        random=(0, "random attacks on each template"),
        seed=(0, "of the random attacks"),
        benign=30000,
        jobs=(1, "processes"),
    )
    sources = template_files()
    totals = {f"listed, one in {options.every}": Tally(), f"random, seed {options.seed}": Tally()}
    with ProcessPoolExecutor(options.jobs) as pool:
        attack_one = partial(attack, every=options.every, spread=options.random, seed=options.seed)
        for tallies in pool.map(attack_one, sources.items()):
            for total, tally in zip(totals.values(), tallies, strict=True):
                for failure in tally.failures or ():
                    print(failure, file=sys.stderr)
                total.attacks += tally.attacks
                total.refused += tally.refused
                total.shown += tally.shown
                total.succeeded += tally.succeeded
    rows = [
        [kind, str(len(sources)), *(f"{n:,}" for n in (each.attacks, each.shown, each.refused, each.succeeded))]
        for kind, each in totals.items()
        if each.attacks
    ]
    attacked = table(["attacks", "templates", "tried", "shown", "refused", "succeeded"], rows)
    counts = compare(sources, options.benign)
    names = ("rendered by transformers", "refused", "text differs")
    harmless = table(names, [[f"{counts[name]:,}" for name in names]])
    asked = " ".join(word for word in sys.argv[1:] if word != "--write")
    versions = ", ".join(f"{name} {version(name)}" for name in ("transformers", "jinja2"))
    where = f"{machine()}; {versions}. Repeat it: `scripts/bench origins {asked}`."
    publish("origins", f"{attacked}\n\nRealistic conversations:\n\n{harmless}\n\n{where}", options.write)


if __name__ == "__main__":
    main()
