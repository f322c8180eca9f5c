"""One long document, which all blocks share: thread by thread they start at pairs of classes that always have a boundary."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from functools import partial
from importlib.util import find_spec
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from device.clock import Bench, Rows, check_ids, on_device
from device.peers import median_seconds
from numpy.typing import NDArray
from shared import peers
from shared.processes import apart
from shared.report import DATA
from shared.texts import TEXTS

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu import GpuEncoder
from tokenweir.gpu.modes.exact import ByteLevelMode

QWEN3 = "qwen3/tokenizer.json"
CHARACTERS = 4_000_000
LANGUAGES = ("English", "Chinese", "code")

TOKTIER_FAMILY, TOKTIER_REVISION = "qwen3_8b", "b968826d9c46dd6066d109eabc6255188de91218"
"""The name and the revision under which toktier knows the same tokenizer file; it compares the file's hash."""


class Peer(NamedTuple):
    """Cost of one text for a library: the median time in seconds, the ids, and the path that it reports."""

    seconds: float
    ids: NDArray[np.int32]
    way: str


def document(language: str, characters: int) -> str:
    """A text of so many characters, the corpus again and again."""
    corpus = "".join(TEXTS[language]())
    return "".join(islice(cycle((corpus,)), -(-characters // len(corpus))))[:characters]


def long(bench: Bench) -> Rows:
    """Milliseconds for one document of 4 million characters, Qwen3's vocabulary: exact mode, our CPU, and the peers. toktier's
    way is what it reports of itself. Their ids are compared with ours.
    """
    import pyarrow

    tok = Tokenizer.from_file(DATA / "tokenizers" / QWEN3)
    made, alone = GpuEncoder(tok, device=bench.device), ByteLevelMode(tok, bench.device)
    threads = bench.threads[0]
    for language in LANGUAGES[: 1 if bench.smoke else None]:
        text = document(language, 20_000 if bench.smoke else CHARACTERS)
        check_ids(tok, made, [text])
        there, offsets = on_device(bench.device, [text])
        given = {"str": [text], "bytes": [text.encode()], "Arrow": pyarrow.array([text])}
        seconds = {f"GPU, {name}": bench.seconds(partial(made.encode_batch, texts)) for name, texts in given.items()}
        seconds["GPU, on the device"] = bench.seconds(
            partial(alone.encode, there, offsets, parse_special=True, guards=None)
        )
        seconds[f"CPU, {threads}"] = bench.seconds(partial(tok.encode_batch, [text], threads=threads))
        yield language, {name: taken * 1e3 for name, taken in seconds.items()} | {"MB": len(text.encode()) / 1e6}
        for name, measure in (("gigatoken", gigatoken), ("toktier", toktier)):
            if find_spec(name) is None:
                continue
            peer = apart(measure, text, bench.repeats)
            same = np.array_equal(peer.ids, tok.encode_array(text))
            way = peer.way if same else f"{peer.way}; other ids"
            yield language, {name: peer.seconds * 1e3, f"{name}'s way": way}


def gigatoken(text: str, repeats: int) -> Peer:
    """Measure gigatoken, whose encoding of one text is of one thread; in a process of its own."""
    peer = peers.gigatoken(DATA / "tokenizers" / QWEN3, 1)
    seconds = median_seconds(lambda: peer.array(text), repeats)
    return Peer(seconds, peers.ids_of(peer.array(text)), "one thread")


def toktier(text: str, repeats: int) -> Peer:
    """Measure toktier on the device if it can be had, else on its CPU path; in a process of its own."""
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(TOKTIER_HOME=home, TOKTIER_OFFLINE="1")
        from toktier import load
        from toktier.artifacts.manifest import ArtifactManifest
        from toktier.config import Config
        from toktier.paths import artifact_cache_dir

        file = DATA / "tokenizers" / QWEN3
        known = {"sha256": hashlib.sha256(file.read_bytes()).hexdigest(), "size": file.stat().st_size}
        entry = {"repo_id": "Qwen/Qwen3-8B", "revision": TOKTIER_REVISION, "files": {"tokenizer.json": known}}
        manifest, config = ArtifactManifest.from_mapping({TOKTIER_FAMILY: entry}), Config.resolve()
        folder = artifact_cache_dir(config) / manifest.get(TOKTIER_FAMILY).directory_name
        Path(folder).mkdir(mode=0o700, parents=True)
        shutil.copy(file, folder / "tokenizer.json")
        made = load(TOKTIER_FAMILY, manifest=manifest, config=config, gpu_delivery="prebuilt")
        seconds = median_seconds(lambda: made.encode(text, lookup="off"), repeats)
        told = made.explain(summary=True)
        way = f"{told['last_execution_path']}, {told['effective_verdict']}"
        return Peer(seconds, np.array(made.encode(text, lookup="off").ids, np.int32), way)
