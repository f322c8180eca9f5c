"""Conversion of a Llama model's GGUF file to a CTranslate2 folder: tensors are dequantized and written as int8.

CTranslate2 does not read GGUF. Conversion lets a small model run in this process and report every id, which llama.cpp's
server does not (see `llama_server.py`). The names in the folder's vocabulary are the ids ("0", "1", and so on), because
the engine never handles text.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokenweir.encode.errors import EngineError
from tokenweir.stream.engines.ctranslate2 import CONTEXT_SIZE

if TYPE_CHECKING:
    from gguf import GGUFReader


def convert_gguf(path: Path, folder: Path) -> None:
    """Convert the GGUF file at `path` to a CTranslate2 model in `folder`, which appears when it is complete.

    Raises:
        EngineError: ctranslate2 or gguf is not installed, the file is not GGUF, or its architecture is not supported.
        OSError: The folder cannot be written.

    """
    try:
        import ctranslate2  # noqa: F401
        from gguf import GGUFReader
    except ModuleNotFoundError as error:
        raise EngineError(f"converting a GGUF file needs {error.name}: pip install 'tokenweir[local]'") from error
    try:
        reader = GGUFReader(path)
    except (OSError, ValueError, IndexError) as error:
        raise EngineError(f"{path}: not a GGUF file: {error}") from error
    spec = _specification(path, reader)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".tmp-") as temporary:
        written = Path(temporary, "model")
        written.mkdir()
        spec.save(str(written))
        config = json.loads((written / "config.json").read_text("utf-8"))
        config[CONTEXT_SIZE] = _Model(path, reader).meta("llama.context_length")
        (written / "config.json").write_text(json.dumps(config, indent=2), "utf-8")
        try:
            os.rename(written, folder)
        except OSError:
            if not (folder / "model.bin").exists():  # else another process has just converted it
                raise


def _specification(path: Path, reader: GGUFReader) -> Any:
    from ctranslate2.specs import TransformerDecoderModelSpec, common_spec

    model = _Model(path, reader)
    if (architecture := model.meta("general.architecture")) != "llama":
        raise EngineError(f"{path}: a model of the architecture {architecture!r}; only 'llama' can be converted")
    spec = TransformerDecoderModelSpec.from_config(
        model.meta("llama.block_count"),
        model.meta("llama.attention.head_count"),
        num_heads_kv=model.meta("llama.attention.head_count_kv"),
        activation=common_spec.Activation.SWISH,
        pre_norm=True,
        ffn_glu=True,
        rms_norm=True,
        rotary_dim=0,  # the full head dimension
        rotary_interleave=True,  # the order of the rows of q and k in GGUF files
        rotary_base=model.meta("llama.rope.freq_base"),
    )
    decoder = spec.decoder
    decoder.scale_embeddings = False
    decoder.embeddings.weight = model.take("token_embd.weight")
    tied = "output.weight" not in model.tensors
    decoder.projection.weight = decoder.embeddings.weight if tied else model.take("output.weight")
    decoder.layer_norm.gamma = model.take("output_norm.weight")
    for number, layer in enumerate(decoder.layer):
        block = f"blk.{number}."
        attention, feed_forward = layer.self_attention, layer.ffn
        attention.layer_norm.gamma = model.take(f"{block}attn_norm.weight")
        attention.linear[0].weight = np.concatenate([model.take(f"{block}attn_{name}.weight") for name in "qkv"])
        attention.linear[1].weight = model.take(f"{block}attn_output.weight")
        feed_forward.layer_norm.gamma = model.take(f"{block}ffn_norm.weight")
        feed_forward.linear_0.weight = model.take(f"{block}ffn_gate.weight")
        feed_forward.linear_0_noact.weight = model.take(f"{block}ffn_up.weight")
        feed_forward.linear_1.weight = model.take(f"{block}ffn_down.weight")
    if model.tensors:  # biases, scaled rotations, experts
        raise EngineError(f"{path}: there is no place for its tensor {min(model.tensors)}")
    spec.register_vocabulary([str(token_id) for token_id in range(len(model.meta("tokenizer.ggml.tokens")))])
    spec.config.bos_token = str(model.meta("tokenizer.ggml.bos_token_id", 0))
    spec.config.eos_token = str(model.meta("tokenizer.ggml.eos_token_id"))
    spec.config.unk_token = str(model.meta("tokenizer.ggml.unknown_token_id", 0))
    spec.config.layer_norm_epsilon = model.meta("llama.attention.layer_norm_rms_epsilon")
    spec.validate()
    spec.optimize(quantization="int8")
    return spec


class _Model:
    """Metadata and tensors of a GGUF file. A tensor is removed when it is taken."""

    def __init__(self, path: Path, reader: GGUFReader) -> None:
        self._path = path
        self._fields = reader.fields
        self.tensors = {tensor.name: tensor for tensor in reader.tensors}

    def meta(self, key: str, default: Any = None) -> Any:
        if key in self._fields:
            return self._fields[key].contents()
        if default is None:
            raise EngineError(f"{self._path}: its metadata lacks {key}")
        return default

    def take(self, name: str) -> npt.NDArray[np.float32]:
        """Remove a tensor and return its weights as float32, of shape (rows, columns) or (columns,).

        Raises:
            EngineError: There is no such tensor, or its type cannot be read.

        """
        from gguf.quants import dequantize

        if name not in self.tensors:
            raise EngineError(f"{self._path}: its tensor {name} is missing")
        tensor = self.tensors.pop(name)
        try:
            weights = dequantize(tensor.data, tensor.tensor_type)
        except NotImplementedError as error:
            raise EngineError(
                f"{self._path}: tensor {name} is {tensor.tensor_type.name}, which gguf cannot read"
            ) from error
        return weights.reshape(tensor.shape.tolist()[::-1]).astype(np.float32, copy=False)
