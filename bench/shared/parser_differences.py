"""The cases of `bench/parsers.py` in which we differ on purpose, with the reason."""

_PROMPT = "the prompt's own text is no part of the answer; that test puts it before"
_SPECIAL = "without a splitter, control tokens give no text, as everywhere; that test keeps them in the content"
_TEXT = "what is uncertain never deletes text: a header that is none, or a call that is no JSON, goes out as answer"

ON_PURPOSE: dict[tuple[str, int], str] = {
    ("NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 2704): _PROMPT,
    ("Apriel-1.6-15b-Thinker-fixed", 6211): _PROMPT,
    ("Apriel-1.6-15b-Thinker-fixed", 6219): _PROMPT,
    ("CohereForAI-c4ai-command-r7b-12-2024-tool_use", 2831): _SPECIAL,
    ("google-gemma-4-31B-it", 3011): _SPECIAL,
    ("openai-gpt-oss-120b", 6442): _SPECIAL,
    ("openai-gpt-oss-120b", 6547): _TEXT,
    ("openai-gpt-oss-120b", 6556): _TEXT,
    ("openai-gpt-oss-120b", 6567): _TEXT,
    ("openai-gpt-oss-120b", 6575): _TEXT,
}
"""The template and the line of the case in llama.cpp's test, to the reason."""
