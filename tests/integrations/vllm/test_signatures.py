"""The stand-ins' methods and fields are those of vLLM's sources, in a folder named by the variable VLLM_SOURCE."""

from __future__ import annotations

import ast
import inspect
import os
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest
import vllm_stand_ins

FOLDER = os.environ.get("VLLM_SOURCE")
CASES = [(name, place) for place in vllm_stand_ins.PLACES for name in place.names]


@pytest.mark.skipif(FOLDER is None, reason="VLLM_SOURCE names no folder of vLLM's sources")
@pytest.mark.parametrize(("name", "place"), CASES, ids=[name for name, _ in CASES])
def test_a_stand_in_has_the_parameters_of_the_source(name, place):
    path = Path(FOLDER, place.source or place.module.replace(".", "/") + ".py")
    theirs = next(node for node in ast.parse(path.read_text("utf-8")).body if getattr(node, "name", None) == name)
    ours = getattr(vllm_stand_ins, name)
    if isinstance(theirs, ast.FunctionDef):
        assert parameters(ours) == names_of(theirs)
        return
    methods = {node.name: node for node in theirs.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    attributes = {node.target.id for node in theirs.body if isinstance(node, ast.AnnAssign)}
    for method, function in vars(ours).items():
        if inspect.isfunction(function) or isinstance(function, classmethod):
            if (method not in methods and method.startswith("_")) or (is_dataclass(ours) and method == "__init__"):
                continue  # made by dataclasses, pydantic or Enum
            given = parameters(getattr(function, "__func__", function))
            expected = names_of(methods[method])
            assert given == [parameter for parameter in expected if parameter in given], method
            if name != "RequestOutput":  # which takes many more
                assert given == expected, method
    own = [each.name for each in fields(ours)] if is_dataclass(ours) else list(getattr(ours, "model_fields", ()))
    assert set(own) <= attributes


def parameters(function) -> list[str]:
    return list(inspect.signature(function).parameters)


def names_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    given = node.args
    parts = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
    return [part.arg for part in parts if part is not None]
