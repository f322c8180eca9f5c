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

import tokenweir
from tokenweir.encode import errors, spec
from tokenweir.encode.formats import FORMATS, huggingface
from tokenweir.stream.events.sampling import ENFORCED_BY_DECODER

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "features.md"

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


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


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


def page() -> str:
    return f"""# Features

Written from the code by `tests/docs/test_features.py`: from signatures, from each engine's `supports`, and from the readers
of files. [Which of these do I need](../choosing.md) says when to use what.

## Options by decoder

`decode_chat()` and `ChatDecoder` take all options of `DecoderOptions`. `chat()` takes those of `OutputOptions`; it knows the
others from the sampling, the tools and the template.

{decoding()}

The server takes the fields of each protocol and refuses by name what it cannot honour; see
[Serve a chat](../howto/serving.md).

## Sampling by engine

An engine refuses a field without an entry, by an `EngineError` of kind "unsupported". "Always" holds with any engine: the
decoder enforces it, and `chat()` asks once for each answer. `SyncEngine` passes the sampling to your function, and `NoEngine`
to the engine behind render. `LlamaServerEngine` refuses `min_tokens`, unless `ignore_eos` is set: its server ends by itself.
`TransformersEngine` honours `json_schema` and `grammar` with `grammars=`, without `ignore_eos` and `min_tokens` beside them.

{engines()}

## Inside other programs

What each adapter of `tokenweir.integrations` does not do. "Handed on" goes to the original library and is counted by `report()`.

| adapter | handed on | refused, by an error | not there |
| --- | --- | --- | --- |
| `patch_transformers()` | components without an exact step, `dropout`, `split_special_tokens=True`, added tokens whose ids the JSON does not give, lone surrogates, negative ids, inputs other than str, list and tuple, templates that the engine does not render | | slow tokenizers |
| vLLM: `tokenweir` | as `patch_transformers()` | | Mistral's tokenizers |
| vLLM: `tokenweir_parsers` | `is_harmony` models, and pairs with a parser of vLLM's own, to vLLM's composition | tokenizers that are not reproduced | forced calls under the name `tokenweir`, and of styles without a grammar in vLLM |
| vLLM: `tokenweir_server` | all other paths, to vLLM | `--default-chat-template-kwargs`, `--skip-tokenizer-init`, `--tokens-only`; `model`, `kv_transfer_params` and `ec_transfer_params` in `extra` | media, adapters loaded later |
| SGLang: `tokenweir` | tokenizers that are not reproduced, to SGLang's method | | beam search's texts |
| `to_llguidance()`, `to_xgrammar()`, `to_outlines()` | | tokenizers without an end token; fewer logits than ids | several end tokens in `to_outlines()` |
| `TemplateRenderer` | | | media; bridges that `declined` explains |
| `TokenBuilder` | | appended messages that the template does not write behind the answer | media |

Single calls that `patch_transformers()` hands on have these reasons in `report()`, besides the errors of tokenweir itself:
{fallbacks()}.

Of MLX's arrays, ragged rows and values that the caller has changed, transformers makes the tensors itself; of padded batches for numpy
and PyTorch, tokenweir does.

## Beside other libraries

What each does itself, by its own documents and its package's classes. "tokenizers" means that it calls that library; an empty cell
means that nothing of the kind was found.

| | tokenweir | fastokens 0.3.5 [1] | gigatoken 0.10.0 [2] | vLLM 0.33 [3] | SGLang 0.5.23 [4] |
| --- | --- | --- | --- | --- | --- |
| tokenizers | byte-level BPE, BPE over characters, SentencePiece, Unigram, WordPiece | BPE; others are refused | BPE, also over characters; others are refused | tokenizers, mistral-common; fastokens in its Rust front end | tokenizers |
| files | tokenizer.json, rank files, SentencePiece models, tekken.json, GGUF | tokenizer.json, rank files | tokenizer.json, rank files, SentencePiece models | those of transformers | those of transformers |
| offsets of tokens | yes | no, an error | no | tokenizers | tokenizers |
| ids to text, whole | yes | yes | yes | tokenizers | tokenizers |
| ids to text, as they come | yes, [every delta final](../explanation/final-deltas.md) | no | no | yes; [known bugs](../explanation/streaming-bugs.md) | yes; [known bugs](../explanation/streaming-bugs.md) |
| chat templates | an engine of its own, with the origin of each character | no | no | Jinja2, by transformers | Jinja2, by transformers |
| spelled control tokens stay text | [yes](../explanation/guard.md) | no | no | no: its pull request 31735 is closed | no: its pull request 30962 is open |
| thinking and tool calls | yes, by [tables of styles](styles.md) | no | no | a parser a model | a parser a model |
| prompts of long conversations | a cache of ids by [proof](../explanation/prompt-cache.md) | a cache of segments | no | | |
| requests in ids, answers in ids | render and derender | no | no | render and derender | a renderer, render only |
| files of any size to shards | `encode-files`, resumable | no | `encode_files`, to arrays | | |
| on a GPU | yes | no | no | | |
| inside transformers | `patch_transformers()` | `patch_transformers()` | `as_hf()` | | |

[1] [fastokens](https://github.com/crusoecloud/fastokens), its README and the methods of `fastokens.Tokenizer`.
[2] [gigatoken](https://github.com/marcelroed/gigatoken), its README and the methods of `gigatoken.Tokenizer`.
[3] [Renderer APIs](https://github.com/vllm-project/vllm/blob/main/docs/serving/online_serving/renderer.md) and vLLM's sources.
[4] [sglang-renderer](https://github.com/sgl-project/sglang/tree/main/rust/sglang-renderer) and SGLang's sources.
The speed of both libraries beside tokenweir's, measured in one run, is in `bench/RESULTS.md`.

## Components by file format

What each reader makes of its files. All of these components are reproduced exactly; a component without a row is refused by
name. [Their reference](components.md) has the fields.

{formats()}
"""


def fallbacks() -> str:
    """The reasons that the backend gives for single calls."""
    found = []
    for path in sorted((ROOT / "src" / "tokenweir" / "integrations").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Raise(exc=ast.Call(func=ast.Name(id="Fallback"), args=[ast.Constant(value=reason)])):
                    found.append(f'"{reason}"')
    return ", ".join(found)


def test_the_page_is_written_from_the_code() -> None:
    assert PAGE.read_text("utf-8") == page()


def test_the_arguments_that_the_server_in_vllm_refuses_are_on_the_page() -> None:
    source = (ROOT / "src" / "tokenweir" / "integrations" / "vllm" / "server.py").read_text("utf-8")
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "UNSUPPORTED":
            assert {f"--{name.replace('_', '-')}" for name in ast.literal_eval(node.value)} <= set(
                page().replace("`", " ").replace(",", " ").replace(";", " ").split()
            )
            return
    raise AssertionError("the server has no list of them")


def test_every_engine_that_says_what_it_supports_is_on_the_page() -> None:
    named = {name for name in tokenweir.__all__ if name.endswith("Engine")}
    assert named - set(ENGINES) == {"Engine", "NoEngine", "SyncEngine"}


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests" / "encode"))
    PAGE.write_text(page(), "utf-8")
