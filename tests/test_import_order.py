"""Imports go one way: between the top folders, and between the rooms inside them."""

import ast
import re
import tomllib
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MAY_IMPORT = {
    "encode": set(),
    "templates": {"encode"},
    "gpu": {"encode"},
    "stream": {"encode", "templates"},
}

ROOMS = {
    "encode": [
        ["base", "errors"],
        ["_core", "other_names", "spec", "unicode"],
        ["files", "pattern", "values", "vocabulary"],
        ["components"],
        ["build", "reference"],
        ["encoding", "formats"],
        ["table_cache"],
        ["tokenizer"],
        ["decode", "per_tokenizer"],
    ],
    "stream": [["events"], ["decode"], ["engines"], ["prompts"], ["chat"], ["serve"]],
    "stream/prompts": [["batching", "turns"], ["cache"]],
    "stream/serve": [
        ["wire"],
        ["limits"],
        ["monitoring", "options"],
        ["page"],
        ["answers"],
        ["http"],
        ["tokens"],
        ["sockets"],
        ["workers"],
        ["app"],
        ["transport"],
    ],
    "stream/serve/wire": [["shared"], ["anthropic", "openai", "responses"], ["vllm"], ["sglang"]],
}
"""The rooms of a folder, in layers: a room imports rooms of the layers before its own."""

IN_NO_EXTRA = {"cupy", "datasets", "nanobind", "ray"}
"""Packages that benchmarks themselves ask for when they are missing."""


@cache
def tree_of(path: Path) -> list[ast.AST]:
    """The nodes of a file, its module first; several tests look at them."""
    return list(ast.walk(ast.parse(path.read_text("utf-8"))))


def imported(path: Path):
    """The modules that a file imports, at its top or inside functions."""
    return (name for name, _ in imports(path))


def imports(path: Path, *, in_functions: bool = True):
    """Modules that a file imports, those for type checkers included, each with its line."""
    nodes = tree_of(path)
    functions = () if in_functions else (n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    left_out = {id(inner) for function in functions for inner in ast.walk(function)}
    for node in nodes:
        if id(node) in left_out:
            continue
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            if node.module == "tokenweir":
                yield from ((f"tokenweir.{alias.name}", node.lineno) for alias in node.names)
            else:
                yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)


@pytest.mark.parametrize("folder", ROOMS)
def test_rooms_import_only_rooms_of_earlier_layers(folder):
    layer = {room: number for number, rooms in enumerate(ROOMS[folder]) for room in rooms}
    prefix = ["tokenweir", *folder.split("/")]
    for path in sorted((ROOT / folder).rglob("*.py")):
        room = path.relative_to(ROOT / folder).parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        assert room in layer, f"{folder}/{room} stands in no layer of ROOMS"
        for name, line in imports(path):
            parts = name.split(".")
            if parts[: len(prefix)] == prefix and len(parts) > len(prefix) and (other := parts[len(prefix)]) != room:
                assert layer.get(other, len(layer)) < layer[room], f"{path}:{line}: {room} imports {other}"


def module_of(path: Path) -> str:
    name = path.relative_to(ROOT).with_suffix("").as_posix().removeprefix("src/tokenweir/").removesuffix("/__init__")
    return f"tokenweir.{name}".replace("/", ".")


def test_no_files_import_each_other_in_a_circle():
    """Imports inside functions do not count: the command line begins again in a worker."""
    files = {module_of(path): path for folder in (*MAY_IMPORT, "src") for path in (ROOT / folder).rglob("*.py")}
    graph = {}
    for module, path in files.items():
        found = {name for name, _ in imports(path, in_functions=False)}
        found = {name if name in files else name.rpartition(".")[0] for name in found}
        graph[module] = (found & files.keys()) - {module}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_a_folder_imports_only_those_before_it(folder):
    files = list((ROOT / folder).rglob("*.py"))
    assert files
    for path in files:
        for name in imported(path):
            first, _, rest = name.partition(".")
            assert first not in MAY_IMPORT, f"{path}: {name} by its bare name"
            if first == "tokenweir":
                assert rest.split(".")[0] in MAY_IMPORT[folder] | {folder}, f"{path}: {name}"


def test_other_rooms_reach_compiled_objects_by_core_of():
    own = {"encode/tokenizer.py"}
    for folder in (
        *MAY_IMPORT,
        "src/tokenweir/cli",
        "src/tokenweir/check",
        "src/tokenweir/corpus",
        "src/tokenweir/verify",
    ):
        for path in (ROOT / folder).rglob("*.py"):
            if path.relative_to(ROOT).as_posix() not in own:
                for node in tree_of(path):
                    private = (
                        isinstance(node, ast.Attribute) and node.attr == "_core" and ast.unparse(node.value) != "self"
                    )
                    assert not private, f"{path}:{node.lineno}: use core_of of encode/tokenizer.py"


@pytest.mark.parametrize("folder", ["encode", "templates"])
def test_no_async_below_stream(folder):
    for path in (ROOT / folder).rglob("*.py"):
        assert not [n for n in tree_of(path) if isinstance(n, ast.AsyncFunctionDef | ast.Await)], path


def test_the_links_are_relative_and_lead_to_the_folders():
    for folder in MAY_IMPORT:
        link = ROOT / "src" / "tokenweir" / folder
        if link.is_symlink():  # an unpacked wheel has plain folders
            assert link.readlink() == Path("../..") / folder


def test_benchmarks_import_what_their_extra_installs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = (*project["dependencies"], *extras["bench"], *extras["serve"])  # which `bench` contains
    assert "tokenweir[serve]" in extras["bench"]
    declared = {"tokenweir", *(name for one in wanted for name in re.findall(r"[\w-]+", one.partition(">")[0]))}
    installed = packages_distributions()
    for path in (ROOT / "bench").rglob("*.py"):
        for name in {name.partition(".")[0] for name in imported(path)} - IN_NO_EXTRA:
            found = {distribution.lower().replace("_", "-") for distribution in installed.get(name, ())}
            assert not found or found & declared, f"{path}: {name} is of {found}"
