"""The cost of compiling the native modules: CPU time and peak memory of each unit. Prints a table.

    python bench/build.py [--single] [--write]

Wants CMake, ninja and nanobind, as a build does. A unit is what an edit of one of its files compiles again; an edit of a header
compiles the units that include it. Optimised as in a wheel, one compiler at a time, without a cache. `--single` measures each file
as a unit of its own (`TOKENWEIR_JOIN_UNITS=OFF`).
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import nanobind
from shared.report import ROOT, arguments, machine, publish, table

SHOWN_SECONDS = 3.0
"""Units that take less share a row."""


class Cost(NamedTuple):
    """CPU seconds, megabytes at most, and the headers of the core that were read."""

    seconds: float
    megabytes: float
    headers: frozenset[str]


def compile_commands(folder: Path, joined: bool) -> list[dict[str, str]]:
    """Return CMake's command for each unit, including those of the binding library."""
    options = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_EXPORT_COMPILE_COMMANDS": "ON",
        "SKBUILD_PROJECT_NAME": "tokenweir",
        "SKBUILD_PROJECT_VERSION": "0",
        "TOKENWEIR_JOIN_UNITS": "ON" if joined else "OFF",
        "Python_EXECUTABLE": sys.executable,
        "nanobind_DIR": nanobind.cmake_dir(),
    }
    given = [f"-D{name}={value}" for name, value in options.items()]
    subprocess.run(["cmake", "-S", ROOT, "-B", folder, *given], check=True, stdout=subprocess.DEVNULL)
    commands: list[dict[str, str]] = json.loads((folder / "compile_commands.json").read_text())
    return commands


def cost(command: dict[str, str], folder: Path) -> Cost:
    """Compile one file."""
    arguments = shlex.split(command["command"])
    dependencies = folder / "unit.d"
    arguments[arguments.index("-o") + 1] = str(folder / "unit.o")
    process = subprocess.Popen([*arguments, "-MMD", "-MF", dependencies], cwd=command["directory"])
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{command['file']} does not compile")
    headers = re.findall(r"encode/core/(\S+\.h)", dependencies.read_text())
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, frozenset(headers))


def name_of(file: str) -> str:
    """Return the name of a unit: its module and subject, or the file."""
    joined = re.search(r"CMakeFiles/(\S+)\.dir/Unity/unity_(\w+)_cxx", file)
    return f"{joined[1]}: {joined[2]}" if joined else Path(file).name


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__, single=(False, "each file as a unit of its own"))
    with tempfile.TemporaryDirectory() as folder:
        commands = compile_commands(Path(folder), not options.single)
        units = {name_of(command["file"]): cost(command, Path(folder)) for command in commands}
    every = units.values()
    rows = [
        [name, f"{unit.seconds:.1f}", f"{unit.megabytes:.0f}"]
        for name, unit in sorted(units.items(), key=lambda item: -item[1].seconds)
        if unit.seconds >= SHOWN_SECONDS
    ]
    if others := [unit for unit in every if unit.seconds < SHOWN_SECONDS]:
        most = max(unit.megabytes for unit in others)
        rows.append([f"{len(others)} others", f"{sum(unit.seconds for unit in others):.1f}", f"{most:.0f}"])
    rows.append(["a first build", f"{sum(c.seconds for c in every):.0f}", f"{max(c.megabytes for c in every):.0f}"])
    for header in (
        "base/utf8.h",
        "pattern/automaton.h",
        "models/bpe.h",
        "decoders/text_step.h",
        "gpu_tables/device_tables.h",
    ):
        of = [unit for unit in every if header in unit.headers]
        cells = [f"{sum(c.seconds for c in of):.0f}", f"{max(c.megabytes for c in of):.0f}"]
        rows.append([f"an edit of {header}: {len(of)} units", *cells])
    publish(
        "build-single" if options.single else "build",
        f"CPU seconds and the compiler's peak memory.\n\n{table(['an edit of', 's', 'MB'], rows)}\n\n{machine()}",
        options.write,
    )


if __name__ == "__main__":
    main()
