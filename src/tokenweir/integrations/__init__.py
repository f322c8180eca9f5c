"""tokenweir inside other libraries; each module is imported only when it is asked for.

    transformers.py    `patch_transformers()`: tokenizers and chat templates of transformers run on tokenweir
    backend.py         an object with the interface of `tokenizers.Tokenizer`, and encoding.py that of its `Encoding`
    decode_stream.py   the same for `tokenizers.decoders.DecodeStream`
    chat_templates.py  templates for `apply_chat_template`
    counts.py          which calls ran where

What cannot be done exactly goes to the original library and is counted; `report()` shows it.
"""

from tokenweir.integrations.counts import Route as Route
from tokenweir.integrations.counts import report as report

__all__ = ["Route", "report"]
