"""Make the folder of the small model that vLLM serves: `model.py FILE.gguf FOLDER`; runs in vLLM's environment.

SmolLM2-135M-Instruct is dequantized, because vLLM loads no GGUF. Two reserved tokens become the tags of thinking, so that reasoning
parsers find them in the vocabulary, and the template knows thinking and tools.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

TAGS = {"<jupyter_script>": ("<think>", "§"), "<empty_output>": ("</think>", "†")}
"""Reserved tokens of the vocabulary, with the tag that takes the place of each, and a token whose vector it gets.

Reserved tokens were not trained. With the vector of a rare character the model repeats a tag that it has seen in the history.
"""


def main(source: Path, folder: Path) -> None:
    """Write weights, tokenizer and template."""
    where = {"pretrained_model_name_or_path": source.parent, "gguf_file": source.name}
    loaded = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)
    foreign = ("quantization_config", "_name_or_path", "transformers_version", "dtype")
    config = {name: value for name, value in loaded.config.to_dict().items() if name not in foreign}
    model = LlamaForCausalLM(LlamaConfig(**config))
    model.load_state_dict(loaded.state_dict(), strict=False)
    tokenizer = AutoTokenizer.from_pretrained(**where)
    vectors = model.get_input_embeddings().weight.data
    for reserved, (_, like) in TAGS.items():
        vectors[tokenizer.convert_tokens_to_ids(reserved)] = vectors[
            tokenizer.encode(like, add_special_tokens=False)[0]
        ]
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer.chat_template = Path(__file__).with_name("template.jinja").read_text()
    tokenizer.save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        path = folder / name
        text = path.read_text(encoding="utf-8")
        for reserved, (tag, _) in TAGS.items():
            text = text.replace(json.dumps(reserved), json.dumps(tag))
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
