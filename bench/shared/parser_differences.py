"""The cases of `bench/parsers.py` in which we differ on purpose, with the reason."""

_PROMPT = "the prompt's own text is no part of the answer; that test puts it before"
_SPECIAL = "without a splitter, control tokens give no text, as everywhere; that test keeps them in the content"
_TEXT = "what is uncertain never deletes text: a header that is none, or a call that is no JSON, goes out as answer"
_INSIDE = (
    "a call's opening token ends the thinking wherever it stands, since models do call so; whoever only mentions one in a "
    "thought looks the same until the thought continues"
)
_REPEATED = "a repeated opener is cut out where only white space comes before it: the template opened the thinking"
_SHOWN = (
    "whether thinking is open is what the tags in the prompt's ids show: where the template leaves out the closer or the "
    "opener of a thought that is continued, the prompt says the contrary"
)
_FENCED = "text goes out as the model wrote it; that test cuts off the fence round JSON that a schema asked for"

ON_PURPOSE: dict[tuple[str, int], str] = {
    ("NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 2704): _PROMPT,
    ("Apriel-1.6-15b-Thinker-fixed", 6211): _PROMPT,
    ("Apriel-1.6-15b-Thinker-fixed", 6219): _PROMPT,
    ("CohereForAI-c4ai-command-r7b-12-2024-tool_use", 2831): _SPECIAL,
    ("google-gemma-4-31B-it", 3011): _SPECIAL,
    ("Qwen3.5-4B", 2156): _PROMPT,
    ("Qwen3.5-4B", 2377): _REPEATED,
    ("mistralai-Ministral-3-14B-Reasoning-2512", 2606): _SPECIAL,
    ("mistralai-Ministral-3-14B-Reasoning-2512", 2648): _FENCED,
    ("mistralai-Ministral-3-14B-Reasoning-2512", 2660): _INSIDE,
    ("Cohere2MoE", 2883): _SPECIAL,
    ("Reka-Edge", 5385): _INSIDE,
    ("meta-llama-Llama-3.1-8B-Instruct", 6302): _FENCED,
    ("NVIDIA-Nemotron-Nano-v2", 5865): _SHOWN,
    ("Apriel-1.6-15b-Thinker-fixed", 6239): _SHOWN,
    ("openai-gpt-oss-120b", 6442): _SPECIAL,
    ("openai-gpt-oss-120b", 6547): _TEXT,
    ("openai-gpt-oss-120b", 6556): _TEXT,
    ("openai-gpt-oss-120b", 6567): _TEXT,
    ("openai-gpt-oss-120b", 6575): _TEXT,
}
"""The template and the line of the case in llama.cpp's test, to the reason."""
