"""Templates that would fill the memory or run for ever, and the time and memory that they get.

    python bench/hostile_templates.py [--every 1]

Every filter, method and comparison is tried on values of several kinds, and so is what the language has. Prints what
took longest.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path

from shared.report import ROOT, machine, publish, table

sys.path.append(str(ROOT / "tests" / "oracles"))

from hostile_cases import KINDS, LANGUAGE, STRUCTURES, sweep

from tokenweir.encode.errors import TemplateError
from tokenweir.templates.chat_template import ChatTemplate


def _memory(field: str) -> int:
    """A figure of this process, in bytes."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition(f"{field}:")[2].split()[0]) << 10


def measure(source: str) -> tuple[float, int, str]:
    """CPU seconds, bytes more at the height than before, and the end: a template's own error, "ok", or the fault."""
    Path("/proc/self/clear_refs").write_text("5")  # begins the count of the most memory anew
    before, start = _memory("VmRSS"), time.thread_time()
    try:
        ChatTemplate(source, guard=False).render([{"role": "user", "content": "x"}])
        end = "ok"
    except TemplateError as error:
        end = "MemoryError" if "MemoryError" in str(error) else str(error)
    return time.thread_time() - start, _memory("VmHWM") - before, end


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--every", type=int, default=1, help="try one in so many of the combinations")
    options = parser.parse_args()
    measure("x")
    most = _memory("VmData") + (512 << 20)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    rows = []
    groups = {
        "the eleven kinds": KINDS,
        "statements and expressions": LANGUAGE,
        "the engine's own structures": STRUCTURES,
        "filters, methods and comparisons": dict(list(sweep().items())[:: options.every]),
    }
    for group, cases in groups.items():
        results = {name: measure(source) for name, source in cases.items()}
        slowest = max(results, key=lambda name: results[name][0])
        for name, (seconds, memory, end) in results.items():
            if seconds > 1.5 or end == "MemoryError":
                print(f"{seconds:5.2f} s {memory >> 20:4d} MB {name}: {end}", file=sys.stderr)
        seconds = [taken for taken, _, _ in results.values()]
        memory = [taken for _, taken, _ in results.values()]
        out = sum(end == "MemoryError" for _, _, end in results.values())
        rows.append(
            [
                group,
                str(len(cases)),
                f"{max(seconds):.2f}",
                f"{max(memory) / 1e6:.0f}",
                str(out),
                slowest.partition(":")[0],
            ]
        )
    header = ["hostile templates", "tried", "most CPU s", "most MB", "out of 512 MiB", "the slowest"]
    text = f"{table(header, rows)}\n\n{machine()}"
    publish("hostile-templates", text)


if __name__ == "__main__":
    main()
