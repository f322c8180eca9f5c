"""tokenweir inside other libraries. Each module is imported on first use.

    transformers.py    `patch_transformers()`: tokenizers and chat templates of transformers run on tokenweir
    backend.py         an object with the interface of `tokenizers.Tokenizer`, and encoding.py that of its `Encoding`
    batches.py         what a backend encodes: ids, truncation, padding; inputs.py checks the forms of inputs
    patched_tokenizer.py  the class in the place of `tokenizers.Tokenizer` under the patch
    decode_stream.py   the same for `tokenizers.decoders.DecodeStream`
    chat_templates.py  templates for `apply_chat_template`
    vllm/              plug-ins for vLLM: the patch, parsers, and the server's paths over its engine
    sglang.py          a plug-in for SGLang: the patch, and its detokenizer
    grammars.py        tokenizers for libraries of grammars
    renderers.py       a renderer for the library `renderers`, and verl.py a builder of ids for verl, for any chat template
    turns.py           turns of a rendered conversation, for these two
    counts.py          counts of the calls that ran on tokenweir and of those that ran on the original library

A call that cannot be reproduced exactly goes to the original library and is counted; `report()` returns the counts.
"""

from tokenweir.integrations.counts import Route as Route
from tokenweir.integrations.counts import report as report

__all__ = ["Route", "report"]
