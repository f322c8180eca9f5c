"""Speed of the GPU encoder beside gigatoken, fastokens, tiktoken, tokenizers, toktier and our own CPU encoder.

    python bench/gpu.py [SECTION...] [--out FILE] [--variant NAME] [--smoke]
    python bench/gpu.py --write FILE...

Sections: see `SECTIONS`; what matters most comes first. Each row is put into FILE (gpu.json) as soon as it is measured, so
that a section which is killed keeps what it has; the page says so. `--write` takes such files, merges them into
bench/gpu.json, and writes the tables of bench/RESULTS.md and the figures.
`scripts/gpu_day` runs all of them on a machine without network.

Times are medians. "On the device" is from text that lies there to ids that lie there; all else is end to end, from what a
caller has to ids on the device. MB and GB are 10^6 and 10^9 bytes of UTF-8. Ids are compared with the CPU's before they
are timed; in blockbpe mode they differ by design.

--smoke runs everything once on a stand-in for CuPy, on batches of a few hundred bytes: it shows that the command works
where there is no GPU, and measures nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from device import checks, host, paper, speed, variants
from device.clock import Bench, Row, Rows
from device.long import long
from shared.report import RESULTS, ROOT, heading, machine, several, table, write_between

from tokenweir.encode.errors import DeviceError


class Section(NamedTuple):
    """A section: measurements that are made together, the format of their numbers, and whether they need a GPU."""

    measure: Callable[[Bench], Rows]
    format: str = ".3f"
    needs_device: bool = True


SECTIONS = {
    "correct": Section(checks.correct, ".1f"),
    "tests": Section(checks.tests),
    "device": Section(speed.device, ".2f"),
    "kernels": Section(speed.kernels, ".1f"),
    "peers-cl100k": Section(speed.peers_cl100k),
    "variants": Section(variants.variants, ".1f"),
    "profile": Section(variants.profile),
    "replay": Section(speed.replay, ".1f"),
    "ends": Section(speed.ends),
    "sweep": Section(speed.sweep),
    "long": Section(long, ".2f"),
    "pieces": Section(speed.pieces, ".2f"),
    "threads": Section(host.threads, needs_device=False),
    "pinned": Section(host.pinned),
    "sanitize": Section(checks.sanitize),
    "decode": Section(speed.decode),
    "models": Section(speed.models),
    "peers-gpt2": Section(speed.peers_gpt2),
    "power": Section(speed.power, ".1f"),
    "figure2": Section(paper.figure2),
    "table1": Section(paper.table1, ".4f"),
    "claims": Section(paper.claims, ".2f"),
    "figure3": Section(paper.figure3),
}

PEERS = ("gigatoken", "fastokens", "tiktoken", "tokenizers", "toktier")
CUT_OFF = ("it was cut off",)


def origin() -> list[str]:
    """The commit that is measured, and the versions of the peers that are installed; `scripts/gpu_day` names the commit."""
    commit = os.environ.get("TOKENWEIR_COMMIT")
    with suppress(FileNotFoundError):
        git = ("git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*")
        commit = commit or subprocess.run(git, check=False, capture_output=True, text=True).stdout.strip()
    versions = []
    for name in PEERS:
        with suppress(PackageNotFoundError):
            versions.append(f"{name} {version(name)}")
    return [f"at {commit}"] * bool(commit) + [", ".join(versions)] * bool(versions)


def shown(name: str, result: Mapping[str, Any]) -> str:
    """A section's result as the page has it: its sentence, its table, and where it was measured."""
    section, numbers = SECTIONS[name], result["numbers"]
    columns = list(dict.fromkeys(column for row in numbers.values() for column in row))

    def cell(value: float | str) -> str:
        return value if isinstance(value, str) else format(value, section.format)

    rows = [(label, *(cell(row.get(column, "")) for column in columns)) for label, row in numbers.items()]
    where = "; ".join([result["device"], result["machine"], *result.get("of", []), *CUT_OFF[: not result["finished"]]])
    return f"{heading(section.measure)}\n\n{table(('', *columns), rows)}\n\n{where}"


def merge(path: Path, results: Mapping[str, Any]) -> dict[str, Any]:
    """Merge results into a file, and return the file's results; a process that is killed meanwhile leaves it unchanged.

    A section replaces the earlier one, unless it was cut off and has fewer results.
    """

    def worth(result: Mapping[str, Any]) -> float:
        return math.inf if result["finished"] else sum(map(len, result["numbers"].values()))

    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    known |= {name: result for name, result in results.items() if worth(result) >= worth(known.get(name, result))}
    merged = {name: known[name] for name in SECTIONS if name in known}
    new = path.with_name(f"{path.name}.new")
    new.write_text(json.dumps(merged, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    new.replace(path)
    return merged


def measured(name: str, bench: Bench, out: Path) -> dict[str, Any]:
    """Measure a section; each row is in the file as soon as it is there."""
    numbers: dict[str, Row] = {}
    result = {
        "device": bench.device.name if SECTIONS[name].needs_device else "no GPU",
        "machine": machine(),
        "of": origin(),
        "finished": False,
        "numbers": numbers,
    }
    for label, row in SECTIONS[name].measure(bench):
        numbers.setdefault(label, {}).update(row)
        merge(out, {name: result})
    result["finished"] = True
    merge(out, {name: result})
    return result


def write(paths: list[Path], page: Path) -> None:
    """Merge results into gpu.json beside a page, and write the page's tables and the figures."""
    for path in paths:
        results = json.loads(path.read_text(encoding="utf-8"))
        merged = merge(page.with_name("gpu.json"), results)
        write_between(page, "gpu", "\n\n".join(shown(name, result) for name, result in merged.items()))
        for name in results.keys() & {"figure2", "figure3"}:
            from device import figures

            draw = figures.draw_merge_times if name == "figure2" else figures.draw_throughput
            draw(merged[name]["numbers"], page.parent / "figures" / f"{name}.svg", merged[name]["device"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", **several(SECTIONS))
    parser.add_argument("--write", nargs="+", type=Path, metavar="FILE", help="write the page from these results")
    parser.add_argument("--smoke", action="store_true", help="run everything once without a GPU; measures nothing")
    parser.add_argument("--list", action="store_true", help="name the sections")
    parser.add_argument("--variant", choices=variants.VARIANTS, help="measure the kernels with a change")
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--profiled", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=Path("gpu.json"), help="the file for the results (gpu.json)")
    parser.add_argument("--page", type=Path, default=RESULTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.list:
        return print(*SECTIONS, sep="\n")
    if options.write:
        return write(options.write, options.page)
    if options.variant:
        others = [*options.sections, "--out", str(options.out), *(["--smoke"] if options.smoke else [])]
        run = variants.run_variant(options.variant, others)
        print(run.stdout, run.stderr, sep="", end="")
        sys.exit(run.returncode)
    bench = Bench(smoke=options.smoke, folder=options.out.parent)
    needs_device = any(SECTIONS[name].needs_device for name in options.sections) or options.once or options.profiled
    with bench.device.use() if needs_device else nullcontext():
        if options.once:
            return checks.once(bench)
        if options.profiled:
            return checks.profiled(bench)
        for name in options.sections:
            print(f"## {name}\n\n{shown(name, measured(name, bench, options.out))}\n", flush=True)


if __name__ == "__main__":
    try:
        main()
    except DeviceError as error:
        sys.exit(f"bench/gpu.py: {error}")
