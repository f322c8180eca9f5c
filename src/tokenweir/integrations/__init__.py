"""tokenweir inside other libraries. Each module is imported on first use.

    transformers/      `patch_transformers()`: tokenizers and chat templates of transformers run on tokenweir
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
