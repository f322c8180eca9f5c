"""The page of features says what signatures, engines and readers say.

`python tests/docs/test_features.py` writes it anew.
"""

from __future__ import annotations

import ast
import inspect
import sys
import typing
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
from written_pages import DOCS, ROOT, check, table, write

import tokenweir
from tokenweir.encode import errors, spec
from tokenweir.encode.formats import FORMATS, huggingface
from tokenweir.stream.events.sampling import ENFORCED_BY_DECODER

PAGE = DOCS / "reference" / "features.md"

DECODERS: dict[str, Any] = {
    name: getattr(tokenweir, name) for name in ("DecodeStream", "DecodeBatch", "ChatDecoder", "decode_chat", "chat")
}
STAGES: dict[str, Any] = {
    name: getattr(tokenweir, name)
    for name in ("until_eos", "detokenize", "split_reasoning", "strip_reasoning", "split_tool_calls", "stop_at")
}
ENGINES: dict[str, Any] = {
    name: getattr(tokenweir, name)
    for name in (
        *("VllmEngine", "SglangEngine", "LlamaServerEngine", "CTranslate2Engine", "TransformersEngine"),
        *("NgramEngine", "ReplayEngine"),
    )
}
OTHER_KIND = {("post-processor", "ByteLevel", "gguf")}
"""Components of several kinds that a reader makes as one of the others."""

KINDS = {
    "normalizer": spec.Normalizer,
    "pre-tokenizer": spec.PreTokenizer,
    "model": spec.Model,
    "post-processor": spec.PostProcessor,
    "decoder": spec.Decoder,
}


def keywords(function: Any) -> set[str]:
    """The names of a function's parameters, the keys of its typed `**options` included."""
    taken = set()
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            options = parameter.annotation.removeprefix("Unpack[").removesuffix("]")
            taken |= typing.get_type_hints(getattr(tokenweir, options)).keys()
        else:
            taken.add(name)
    return taken


def decoding() -> str:
    """Options by decoder; an option of `Sampling` reaches `chat()` by its sampling."""
    options = typing.get_type_hints(tokenweir.DecoderOptions)
    taken = {name: keywords(function) for name, function in (DECODERS | STAGES).items()}
    sampled = set(tokenweir.Sampling.__struct_fields__) & ENFORCED_BY_DECODER
    rows = []
    for option in ["prompt_ids", *options]:
        cells = ["yes" if option in taken[name] else "" for name in DECODERS]
        if not cells[-1] and option in sampled:
            cells[-1] = "`sampling`"
        stages = ", ".join(f"`{name}()`" for name in STAGES if option in taken[name])
        rows.append([f"`{option}`", *cells, stages])
    saved = ["yes" if hasattr(function, "from_state") else "" for function in DECODERS.values()]
    rows.append(["a state that can be saved", *saved, ""])
    loop = ["" if inspect.isclass(function) else "yes" for function in DECODERS.values()]
    rows.append(["needs an event loop", *loop, "all"])
    header = [f"`{name}`" if inspect.isclass(function) else f"`{name}()`" for name, function in DECODERS.items()]
    return table(["option", *header, "stages"], rows)


def engines() -> str:
    """Fields of `Sampling` by engine, from each engine's `supports`."""
    rows = []
    for field in tokenweir.Sampling.__struct_fields__:
        if field in ENFORCED_BY_DECODER:
            cells = ["always"] * len(ENGINES)
        else:
            cells = ["yes" if field in engine.supports else "" for engine in ENGINES.values()]
        rows.append([f"`{field}`", *cells])
    for attribute in ("media", "parallel", "runs_ahead"):
        cells = ["yes" if getattr(engine, attribute, False) else "" for engine in ENGINES.values()]
        rows.append([f"the attribute `{attribute}`", *cells])
    return table(["field", *(f"`{name}`" for name in ENGINES)], rows)


def constructed(module: ModuleType) -> set[str]:
    """The components that a reader's sources construct."""
    path = Path(inspect.getfile(module))
    sources = path.parent.glob("*.py") if path.name == "__init__.py" else [path]
    calls = [
        node
        for source in sources
        for node in ast.walk(ast.parse(source.read_text("utf-8")))
        if isinstance(node, ast.Call)
    ]
    made = (
        call.func.value if isinstance(call.func, ast.Attribute) else call.func for call in calls
    )  # `X.around(...)` too
    return {name.id for name in made if isinstance(name, ast.Name)} & vars(spec).keys()


def readable() -> set[str]:
    """The components that a tokenizer.json may have: what its reader takes of an example of each."""
    from test_spec import DECODERS, MODELS, NORMALIZERS, POST_PROCESSORS, PRE_TOKENIZERS

    found = {"NormalizerSequence", "PreTokenizerSequence", "PostProcessorSequence", "DecoderSequence"}
    examples = (
        ("model", MODELS),
        ("normalizer", NORMALIZERS),
        ("pre_tokenizer", PRE_TOKENIZERS),
        ("post_processor", POST_PROCESSORS),
        ("decoder", DECODERS),
    )
    for part, components in examples:
        for component in components:
            try:
                file = {"model": MODELS[0]} | {part: component}
                huggingface.read(msgspec.json.encode(file))
            except (errors.TokenizerFileError, errors.UnsupportedTokenizerError):
                continue
            found.add(type(component).__name__)
    return found


def formats() -> str:
    """Components by format, from the readers."""
    made = {
        name: readable() if name == "huggingface" else constructed(inspect.getmodule(each.read))
        for name, each in FORMATS.items()
    }
    rows = []
    for kind, union in KINDS.items():
        for component in typing.get_args(union):
            name = component.__name__
            cells = ["yes" if name in made[each] and (kind, name, each) not in OTHER_KIND else "" for each in FORMATS]
            rows.append([kind, f"`{name}`", *cells])
    header = [each.noun.removeprefix("a ") for each in FORMATS.values()]
    return table(["kind", "component", *header], rows)


def parts() -> dict[str, str]:
    return {"decoding": decoding(), "engines": engines(), "fallbacks": f"{fallbacks()}.", "formats": formats()}


def fallbacks() -> str:
    """The reasons that the backend gives for single calls."""
    found = []
    for path in sorted((ROOT / "src" / "tokenweir" / "integrations").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Raise(exc=ast.Call(func=ast.Name(id="Fallback"), args=[ast.Constant(value=reason)])):
                    found.append(f'"{reason}"')
    assert found
    return ", ".join(found)


def test_the_page_is_written_from_the_code() -> None:
    check(PAGE, **parts())


def test_the_arguments_that_the_server_in_vllm_refuses_are_on_the_page() -> None:
    source = (ROOT / "src" / "tokenweir" / "integrations" / "vllm" / "server.py").read_text("utf-8")
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "UNSUPPORTED":
            assert {f"--{name.replace('_', '-')}" for name in ast.literal_eval(node.value)} <= set(
                PAGE.read_text("utf-8").replace("`", " ").replace(",", " ").replace(";", " ").split()
            )
            return
    raise AssertionError("the server has no list of them")


def test_every_engine_that_says_what_it_supports_is_on_the_page() -> None:
    named = {name for name in tokenweir.__all__ if name.endswith("Engine")}
    assert named - set(ENGINES) == {"Engine", "NoEngine", "SyncEngine"}


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests" / "encode"))
    write(PAGE, **parts())
