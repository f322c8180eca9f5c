r"""What is known of rank files: the pattern and the special tokens, which they do not carry.

Three things tell what a rank file belongs to, in this order: its own name; the class that tokenizer_config.json names
(`auto_map`, `tokenizer_class`); and the name of a `tokenization_*.py` beside it, which is never executed or read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_UPPER_NOT_HAN, _LOWER_NOT_HAN = (letters[:-1] + r"&&[^\p{Han}]]" for letters in (UPPER, LOWER))

R50K_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
CL100K_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
O200K_PATTERN = "|".join(
    [
        rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{_CONTRACTION}",
        rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{_CONTRACTION}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)
QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
KIMI_PATTERN = "|".join(
    [
        r"[\p{Han}]+",
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER_NOT_HAN}*{_LOWER_NOT_HAN}+{_CONTRACTION}",
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER_NOT_HAN}+{_LOWER_NOT_HAN}*{_CONTRACTION}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)


class KnownRankFile(NamedTuple):
    """What goes with a rank file.

    Attributes:
        name: For people.
        pattern: The pre-tokenizer's pattern, as fancy-regex reads it.
        special_tokens: Text to id.
        reserved: So many ids after the ranks are special tokens, `<|reserved_token_ID|>` unless tokenizer_config.json
            names them.
        nfc: Text is brought into Unicode's form C first.
        not_with: Keys of a config.json that say that the model has more special tokens than these.

    """

    name: str
    pattern: str
    special_tokens: Mapping[str, int] = {}
    reserved: int = 0
    nfc: bool = False
    not_with: Collection[str] = ()


# tiktoken 0.14, tiktoken_ext/openai_public.py
_R50K = KnownRankFile("OpenAI's r50k_base", R50K_PATTERN, {"<|endoftext|>": 50256})
_CL100K = KnownRankFile(
    "OpenAI's cl100k_base",
    CL100K_PATTERN,
    {
        "<|endoftext|>": 100257,
        "<|fim_prefix|>": 100258,
        "<|fim_middle|>": 100259,
        "<|fim_suffix|>": 100260,
        "<|endofprompt|>": 100276,
    },
)
_O200K = KnownRankFile("OpenAI's o200k_base", O200K_PATTERN, {"<|endoftext|>": 199999, "<|endofprompt|>": 200018})

# tokenization_qwen.py of Qwen/Qwen-7B-Chat. The models that see or hear share its class and have more special tokens.
_QWEN = KnownRankFile(
    "Qwen's first models",
    QWEN_PATTERN,
    {
        name: 151643 + i
        for i, name in enumerate(
            ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *(f"<|extra_{i}|>" for i in range(205))]
        )
    },
    nfc=True,
    not_with=("visual", "audio"),
)

# tokenization_kimi.py of moonshotai/Kimi-Linear-48B-A3B-Instruct and Kimi-K3. Some versions reserve two ids more, which
# no model has an embedding for. They hand texts over in parts of 400,000 characters, and of 25,000 without white space
# or of nothing else; at the edges of these parts their ids may differ from those of the whole text.
_KIMI = KnownRankFile("Kimi", KIMI_PATTERN, reserved=256)

_MAX_ID_DIGITS = 9  # real ids have six; `int` refuses more than 4,300

_BY_FILE = {
    "gpt2.tiktoken": _R50K,
    "r50k_base.tiktoken": _R50K,
    "p50k_base.tiktoken": _R50K,
    "cl100k_base.tiktoken": _CL100K,
    "o200k_base.tiktoken": _O200K,
    "qwen.tiktoken": _QWEN,
}
_BY_CLASS = {
    "tokenization_qwen.QWenTokenizer": _QWEN,
    "QWenTokenizer": _QWEN,
    "tokenization_kimi.TikTokenTokenizer": _KIMI,  # other models have a class of this name in another file
}
_BY_CODE = {"tokenization_qwen.py": _QWEN, "tokenization_kimi.py": _KIMI}


class Recognised(NamedTuple):
    """A rank file that is known.

    Attributes:
        known: What goes with it.
        by: What told it, for people.
        named: Ids that tokenizer_config.json gives a token.

    """

    known: KnownRankFile
    by: str
    named: frozenset[int] = frozenset()


def recognise(
    name: str,
    tokenizer_config: Mapping[str, Any] = {},
    config: Mapping[str, Any] = {},
    code: Collection[str] = (),
) -> Recognised | None:
    """Tell what a rank file belongs to; None if nothing says it.

    Args:
        name: The file's name.
        tokenizer_config: The tokenizer_config.json beside it.
        config: The config.json beside it.
        code: The names of the Python files beside it.

    """
    for known, by in _candidates(name, tokenizer_config, code):
        if known is not None:
            named = tokenizer_config.get("added_tokens_decoder")
            keys = named if isinstance(named, dict) else ()
            ids = frozenset(int(key) for key in keys if key.isdecimal() and len(key) <= _MAX_ID_DIGITS)
            return None if any(key in config for key in known.not_with) else Recognised(known, by, ids)
    return None


def _candidates(
    name: str, tokenizer_config: Mapping[str, Any], code: Collection[str]
) -> Iterator[tuple[KnownRankFile | None, str]]:
    yield _BY_FILE.get(name), f"the name {name}"
    auto_map = tokenizer_config.get("auto_map")
    classes = auto_map.get("AutoTokenizer") if isinstance(auto_map, dict) else None
    for class_name in classes if isinstance(classes, list) else [classes]:
        if isinstance(class_name, str):
            bare = class_name.rpartition("--")[2]  # behind the repository that the class may be in
            yield _BY_CLASS.get(bare), f"tokenizer_config.json's auto_map, {bare}"
    if isinstance(class_name := tokenizer_config.get("tokenizer_class"), str):
        yield _BY_CLASS.get(class_name), f"tokenizer_config.json's tokenizer_class, {class_name}"
    for file in sorted(code):
        yield _BY_CODE.get(file), f"the file {file}"
