"""The distance of BlockBPE's ids from HuggingFace's: the first column of the paper's Table 1, on GSM8K and AGIEval.

    python bench/similarity.py [--sample 40] [--write]

The paper (You, "BlockBPE", 2025) compares the ids of prompts for Llama-3.1-8B-Instruct: similarity is 1 - d / |s|, the mean
over all prompts, with the Levenshtein distance d between the two lists of ids. It prints |s| for the length of the prompt
(a string, so its characters) and says "the proportion of the string that matches" (which would be of tokens), and not what
the prompts looked like. So both denominators are here, for several forms of GSM8K's 1,319 test problems: the question, the
question with its answer, and lm-evaluation-harness's prompt with no and with five solved problems before it. (The
harness draws those five from the training set; here they are the five problems before it in the test set.) AGIEval's
prompts are its own zero-shot ones, where `TOKENWEIR_AGIEVAL` names the folder of its texts (`data/v1` of
github.com/ruixiangcui/AGIEval). The paper does not say which of them it took; English comes near its 0.998. Nor does it say
whether both sides had the beginning-of-text token that HuggingFace's library adds by default. Here neither has, but in the
column "HuggingFace's BOS".

The ids of blockbpe mode come from its CPU form, those of exact mode from the tokenizer; both are compared with what the
kernels make of a sample, on a GPU if there is one, else under the tests' shim. Exits with 1 if any differ, or if exact mode
differs from HuggingFace anywhere.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from random import Random

import numpy as np
import rapidfuzz
from numpy.typing import NDArray
from shared.agieval import AGIEVAL, NO_AGIEVAL
from shared.report import DATA, ROOT, arguments, machine, publish, table
from shared.table1 import PAPER, Ids, prompts, similarities

from tokenweir.encode.errors import DeviceError
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu.device import CupyDevice, Device
from tokenweir.gpu.encoder import MODES, GpuEncoder
from tokenweir.gpu.kernels import kernel_sources
from tokenweir.gpu.modes.blockbpe import unsplit
from tokenweir.verify.references import HuggingFace

ACCURACIES = {"GSM8K": "0.781 / 0.224"}
"""Accuracies of Llama-3.1-8B-Instruct in the paper's Table 1, with HuggingFace's ids and with BlockBPE's."""


def ids_of(rows: Iterable[NDArray[np.int32]]) -> list[list[int]]:
    """As lists, which compare as a whole."""
    return [ids.tolist() for ids in rows]


def row(form: str, texts: list[str], theirs: Ids, ours: Mapping[str, Ids], bos: int) -> tuple[str, ...]:
    """Similarity by both denominators and how many prompts have the same ids, for each mode."""
    characters, tokens = list(map(len, texts)), list(map(len, theirs))
    with_bos = [[bos, *ids] for ids in theirs]
    cells = [form, f"{np.mean(characters):.0f}", f"{np.mean(tokens):.0f}"]
    cells.append(f"{similarities(with_bos, ours['blockbpe'], characters):.4f}")
    for ids in ours.values():
        same = np.mean([left == right for left, right in zip(theirs, ids, strict=True)])
        cells += [f"{similarities(theirs, ids, lengths):.4f}" for lengths in (characters, tokens)] + [f"{same:.1%}"]
    return tuple(cells)


def kernel_device() -> Device:
    """The GPU, or the tests' stand-in for one."""
    try:
        return CupyDevice()
    except DeviceError:
        sys.path.insert(0, str(ROOT / "tests" / "gpu" / "devices"))
        from shim_device import ShimDevice

        return ShimDevice(kernel_sources())


def main() -> int:
    options = arguments(
        __doc__,
        sample=(40, "prompts of each form for the kernels (40)"),
    )

    path = DATA / "tokenizers" / "llama-3.1" / "tokenizer.json"
    tok, reference = Tokenizer.from_file(path), HuggingFace(path)
    tokenizers = {"blockbpe": unsplit(tok), "exact": tok}
    device = kernel_device()
    encoders = {mode: GpuEncoder(tok, mode=mode, device=device, min_bytes=0) for mode in MODES}
    rows, unequal = [], 0
    for form, texts in prompts().items():
        theirs = reference.encode(texts, add_special_tokens=False)
        ours = {mode: ids_of(one.encode_batch(texts, add_special_tokens=False)) for mode, one in tokenizers.items()}
        rows.append(row(form, texts, theirs, ours, tok.bos_id or 0))
        unequal += sum(left != right for left, right in zip(theirs, ours["exact"], strict=True))
        sample = Random(form).sample(range(len(texts)), min(options.sample, len(texts)))
        for mode, encoder in encoders.items():
            made = encoder.encode_batch([texts[i] for i in sample], add_special_tokens=False).to_host()
            unequal += sum(ids != ours[mode][i] for ids, i in zip(ids_of(made), sample, strict=True))
    on_cpu = sum(encoder.stats.on_cpu.total() for encoder in encoders.values())

    modes = [f"{mode}, {what}" for mode in tokenizers for what in ("by characters", "by tokens", "same ids")]
    columns = ("form of the prompt", "characters", "tokens", "blockbpe, by characters, HuggingFace's BOS", *modes)
    claims = [
        ["similarity", *map(str, PAPER.values())],
        ["accuracy, HuggingFace / BlockBPE (not measured here)", *(ACCURACIES.get(name, "") for name in PAPER)],
    ]
    checks = [[str(options.sample), f"{on_cpu:,}", f"{unequal:,}"]]
    checked = table([f"prompts of each form on {device.name}", "left to the CPU", "other ids"], checks)
    versions = f"{machine()}; {reference.library}, rapidfuzz {rapidfuzz.__version__}"
    left_out = () if AGIEVAL.exists() else (NO_AGIEVAL,)
    text = "\n\n".join((table(columns, rows), table(["the paper", *PAPER], claims), checked, *left_out, versions))
    publish("similarity", text, options.write)
    return 1 if unequal or on_cpu else 0


if __name__ == "__main__":
    sys.exit(main())
