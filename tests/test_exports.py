"""The public names: complete, true, and cheap to have."""

import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import tokenweir

ROOT = Path(__file__).resolve().parents[1]


def run(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-I", "-c", program], check=True, capture_output=True, text=True
    ).stdout.strip()


def test_all_is_sorted_and_every_name_resolves():
    assert tokenweir.__all__ == sorted(tokenweir.__all__)
    for name in tokenweir.__all__:
        assert getattr(tokenweir, name) is not None


def test_every_name_is_loaded_from_the_module_that_type_checkers_see():
    stub = Path(tokenweir.__file__).with_suffix(".pyi").read_text("utf-8")
    lines = [line for line in stub.splitlines() if line.startswith("from ")]
    assert lines == [f"from {tokenweir._MODULE_OF[name]} import {name} as {name}" for name in tokenweir._MODULE_OF]
    for name, module in tokenweir._MODULE_OF.items():
        assert getattr(tokenweir, name) is getattr(import_module(module), name)


def test_a_name_that_is_not_public():
    with pytest.raises(AttributeError, match="^module 'tokenweir' has no attribute 'Tokeniser'$"):
        tokenweir.Tokeniser  # noqa: B018
    assert {*dir(tokenweir)} == {*tokenweir.__all__, "__version__"}


def test_reprs_name_what_objects_were_made_of():
    tok = tokenweir.Tokenizer.default()
    assert repr(tokenweir.DecodeStream(tok)).startswith(f"DecodeStream({tok}, ")
    assert repr(tokenweir.ChatDecoder(tok, stop=["."])) == f"ChatDecoder({tok}, stop=['.']; open)"
    assert repr(tokenweir.ChatTemplate("{{ messages }}")) == "ChatTemplate(default, 14 characters, reads messages)"
    assert repr(tokenweir.NgramEngine()) == "NgramEngine(delay=0.0)"
    assert repr(tokenweir.NoEngine(8)) == "NoEngine(8)"
    assert repr(tokenweir.VllmEngine("http://host:1")) == "VllmEngine('http://host:1')"


def public_signatures():
    """The name and signature of every public function, class and public method that has one."""
    for name in tokenweir.__all__:
        value = getattr(tokenweir, name)
        owned = inspect.getmembers(value, inspect.isroutine) if isinstance(value, type) else []
        for place, call in [(name, value), *((f"{name}.{method}", call) for method, call in owned if method[0] != "_")]:
            try:
                yield place, inspect.signature(call)
            except (TypeError, ValueError):  # a union, or compiled without a signature
                continue


def test_a_tokenizer_is_called_tokenizer_everywhere():
    takers = set()
    for place, signature in public_signatures():
        assert not {"tok", "tokeniser"} & set(signature.parameters), place
        for name, parameter in signature.parameters.items():
            if parameter.annotation in ("Tokenizer", tokenweir.Tokenizer):
                assert name == "tokenizer", place
                takers.add(place)
    assert {"DecodeStream", "DecodeBatch", "ChatDecoder", "chat", "detokenize", "ChatStreamer"} <= takers
    assert {"Prompt.encode", "Prompt.guarded_for", "decode_chat", "ChatTemplate.from_tokenizer"} <= takers


def test_every_error_is_a_builtin_too():
    builtins = {
        "ContextLengthError": ValueError,
        "CorpusError": (OSError, ValueError),
        "DeliveryError": RuntimeError,
        "DeviceError": RuntimeError,
        "EngineError": RuntimeError,
        "MediaError": ValueError,
        "ProtocolError": ValueError,
        "StateError": ValueError,
        "TemplateError": ValueError,
        "TextError": ValueError,
        "TokenIdError": ValueError,
        "TokenizerFileError": (OSError, ValueError),
        "UnsupportedTokenizerError": ValueError,
    }
    errors = {name for name in tokenweir.__all__ if name.endswith("Error")}
    assert errors == {*builtins, "TokenweirError"}
    for name, kinds in builtins.items():
        error = getattr(tokenweir, name)
        assert issubclass(error, tokenweir.TokenweirError)
        for kind in kinds if isinstance(kinds, tuple) else (kinds,):
            assert issubclass(error, kind)


def test_importing_tokenweir_loads_neither_cupy_nor_anything_heavy():
    loaded = run("import sys, tokenweir; print(*{m.split('.')[0] for m in sys.modules})").split()
    assert not {"cupy", "numpy", "websockets", "anyio"} & set(loaded)


def test_decoding_loads_no_templates():
    loaded = run("import sys; from tokenweir import ChatDecoder, decode_chat; print(*sys.modules)").split()
    assert not {"tokenweir.templates._native", "tokenweir.templates.chat_template"} & set(loaded)


def test_no_module_loads_cupy():
    program = """
import importlib, pkgutil, sys, tokenweir
names = {module.name for module in pkgutil.walk_packages(tokenweir.__path__, "tokenweir.")} - {"tokenweir.__main__"}
for name in names:
    if not name.startswith(tuple(f"tokenweir.{host}" for host in ("integrations.vllm.", "corpus.curator", "corpus.datatrove"))):  # their hosts import them
        importlib.import_module(name)
assert {"tokenweir.gpu", "tokenweir.cli.encode", *tokenweir._MODULE_OF.values()} <= names
print("cupy" in sys.modules)"""
    assert run(program) == "False"


def test_the_folders_are_not_importable_by_their_bare_names():
    found = run(
        "import importlib.util as u; print([n for n in ('encode', 'gpu', 'stream', 'templates') if u.find_spec(n)])"
    )
    assert found == "[]"


def test_version():
    assert tokenweir.__version__.count(".") == 2


SERVE_PACKAGES = "httptools", "prometheus_client", "starlette", "uvicorn", "websockets"
WITHOUT_SERVE = f"import sys; sys.modules |= dict.fromkeys({SERVE_PACKAGES}); import tokenweir; "


@pytest.mark.parametrize("name", ["serve", "asgi_app", "Session"])
def test_a_name_of_the_server_names_the_missing_extra(name):
    program = f"try: tokenweir.{name}\nexcept ImportError as error: print(error)"
    said = run(f"import sys; sys.modules |= dict.fromkeys({SERVE_PACKAGES}); import tokenweir\n{program}")
    assert said in {f"tokenweir.{name} needs {package}: pip install 'tokenweir[serve]'" for package in SERVE_PACKAGES}


def test_the_patch_names_the_missing_package():
    program = "try: tokenweir.patch_transformers\nexcept ImportError as error: print(error)"
    said = run(f"import sys; sys.modules['tokenizers'] = None; import tokenweir\n{program}")
    assert said == "tokenweir.patch_transformers needs tokenizers: pip install 'transformers>=5'"


def test_all_else_works_without_the_packages_of_the_server():
    rest = {"Application", "Place", "Server", "ServerOptions", "Session", "asgi_app", "serve"}
    program = f"[getattr(tokenweir, name) for name in tokenweir.__all__ if name not in {rest}]; print('loaded')"
    assert run(WITHOUT_SERVE + program) == "loaded"


def test_the_command_line_names_the_missing_extra():
    program = "from tokenweir.cli import main; sys.argv = ['tokenweir', 'serve', '--port=0']; main()"
    command = [sys.executable, "-I", "-c", WITHOUT_SERVE + program]
    failed = subprocess.run(command, check=False, capture_output=True, text=True)
    assert failed.returncode != 0
    assert re.fullmatch(r"tokenweir: error: the server needs \S+: pip install 'tokenweir\[serve\]'\n", failed.stderr)
