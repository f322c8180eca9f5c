r"""Known rank files: the pattern and the special tokens, which they do not carry.

A rank file is recognised, in this order, by its own name; by the class that tokenizer_config.json names (`auto_map`,
`tokenizer_class`); by the `model_type` of config.json; by the name of a `tokenization_*.py` beside it, which is never
executed or read; and by its content.
"""

from __future__ import annotations

import hashlib
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
WHISPER_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
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
    """The pattern and the special tokens of a known rank file, which the file itself lacks.

    Attributes:
        name: The name of the vocabulary.
        pattern: The pre-tokenizer's pattern, as fancy-regex reads it.
        special_tokens: The ids of special tokens by their texts.
        following: More special tokens, with the next ids after the ranks, in this order.
        reserved: The number of ids after the ranks that are special tokens: `<|reserved_token_ID|>` unless
            tokenizer_config.json names them.
        nfc: Whether text is normalized to form C first.
        not_with: Keys of config.json that show that a model has other special tokens; then the file is not recognised.

    """

    name: str
    pattern: str
    special_tokens: Mapping[str, int] = {}
    following: tuple[str, ...] = ()
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
_P50K_EDIT = KnownRankFile(
    "OpenAI's p50k_edit",
    R50K_PATTERN,
    {"<|endoftext|>": 50256, "<|fim_prefix|>": 50281, "<|fim_middle|>": 50282, "<|fim_suffix|>": 50283},
)
_O200K = KnownRankFile("OpenAI's o200k_base", O200K_PATTERN, {"<|endoftext|>": 199999, "<|endofprompt|>": 200018})
_HARMONY = KnownRankFile(
    "OpenAI's o200k_harmony",
    O200K_PATTERN,
    # Id 200018 has two names, <|endofprompt|> and <|reserved_200018|>; tiktoken decodes it to the first, too.
    {
        **_O200K.special_tokens,
        **{f"<|reserved_{i}|>": i for i in (200000, 200001, 200004, *range(200009, 200012), *range(200013, 201088))},
        "<|startoftext|>": 199998,
        "<|return|>": 200002,
        "<|constrain|>": 200003,
        "<|channel|>": 200005,
        "<|start|>": 200006,
        "<|end|>": 200007,
        "<|message|>": 200008,
        "<|call|>": 200012,
    },
)

# openai-whisper 20250625, whisper/tokenizer.py (`get_encoding`); the large models from version 3 on have a hundredth language.
_WHISPER_LANGUAGES = (
    "en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th ur hr bg lt la mi ml cy "
    "sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr pa si km sn yo so af oc ka be tg sd gu am yi lo "
    "uz fo ht ps tk nn mt sa lb my bo tl mg as tt haw ln ha ba jw su yue"
)
_WHISPER_TASKS = ["translate", "transcribe", "startoflm", "startofprev", "nospeech", "notimestamps"]
_WHISPER_V3_ROWS = 51866


def _whisper(languages: int) -> KnownRankFile:
    names = ["endoftext", "startoftranscript", *_WHISPER_LANGUAGES.split()[:languages], *_WHISPER_TASKS]
    names += [f"{i * 0.02:.2f}" for i in range(1501)]
    following = tuple(f"<|{name}|>" for name in names)
    return KnownRankFile(f"OpenAI's Whisper with {languages} languages", WHISPER_PATTERN, following=following)


_WHISPER, _WHISPER_V3 = _whisper(99), _whisper(100)


# llama-models 0.3, llama_models/llama4/tokenizer.py. It hands texts over in parts, as Kimi's does below.
def _llama4() -> tuple[str, ...]:
    def reserved(name: str, start: int, stop: int) -> list[str]:
        return [f"<|{name}reserved_special_token_{i}|>" for i in range(start, stop)]

    named = ["<|begin_of_text|>", "<|end_of_text|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"]
    named += ["<|header_start|>", "<|header_end|>", "<|eom|>", "<|eot|>", "<|step|>"]
    named += reserved("text_post_train_", 0, 6)
    named += ["<|python_start|>", "<|python_end|>", "<|finetune_right_pad|>", *reserved("text_post_train_", 8, 69)]
    named += ["<|image_start|>", "<|image_end|>", *reserved("vision_", 0, 2), "<|tile_x_separator|>"]
    named += ["<|tile_y_separator|>", *reserved("vision_", 2, 6), "<|image|>", *reserved("vision_", 6, 7), "<|patch|>"]
    named += reserved("vision_", 7, 1048)
    named += [*reserved("reasoning_", 0, 8), "<|reasoning_thinking_start|>", "<|reasoning_thinking_end|>"]
    return (*named, *reserved("", 0, 2048 - len(named)))


_LLAMA4 = KnownRankFile("Llama 4", O200K_PATTERN, following=_llama4())

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
    "p50k_edit.tiktoken": _P50K_EDIT,
    "cl100k_base.tiktoken": _CL100K,
    "o200k_base.tiktoken": _O200K,
    "o200k_harmony.tiktoken": _HARMONY,
    "multilingual.tiktoken": _WHISPER,
    "qwen.tiktoken": _QWEN,
}
_BY_CLASS = {
    "tokenization_qwen.QWenTokenizer": _QWEN,
    "QWenTokenizer": _QWEN,
    "tokenization_kimi.TikTokenTokenizer": _KIMI,  # other models have a class of this name in another file
}
_BY_CODE = {"tokenization_qwen.py": _QWEN, "tokenization_kimi.py": _KIMI}
_BY_MODEL_TYPE = {
    "llama4": _LLAMA4,
    "llama4_text": _LLAMA4,
    "kimi_k2": _KIMI,
    "kimi_linear": _KIMI,
    "kimi_k3": _KIMI,
}
_BY_SHA256 = {"d0bdbaf59b0762c8c807617e2d8ea51420eb1b1de266df2495be755c8e0ed6ed": _LLAMA4}  # named like many others


class Recognised(NamedTuple):
    """A rank file that was recognised as a known one.

    Attributes:
        known: The pattern and the special tokens.
        by: By what it was recognised, such as "the name tokenizer.model"; for messages.
        named: The ids that tokenizer_config.json lists with a token.

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
    """Recognise a known rank file by its name and by the files beside it; return None if it is unknown.

    Args:
        name: The file's name.
        tokenizer_config: The content of tokenizer_config.json.
        config: The content of config.json.
        code: The names of the `tokenization_*.py` files beside it.

    """
    for known, by in _candidates(name, tokenizer_config, config, code):
        if known is not None:
            named = tokenizer_config.get("added_tokens_decoder")
            keys = named if isinstance(named, dict) else ()
            ids = frozenset(int(key) for key in keys if key.isdecimal() and len(key) <= _MAX_ID_DIGITS)
            return None if any(key in config for key in known.not_with) else Recognised(known, by, ids)
    return None


def recognise_content(data: bytes) -> Recognised | None:
    """Recognise a known rank file by the hash of its content; return None if it is unknown."""
    known = _BY_SHA256.get(hashlib.sha256(data).hexdigest())
    return None if known is None else Recognised(known, "its content")


def _candidates(
    name: str, tokenizer_config: Mapping[str, Any], config: Mapping[str, Any], code: Collection[str]
) -> Iterator[tuple[KnownRankFile | None, str]]:
    by_file = _BY_FILE.get(name)
    if by_file is _WHISPER and config.get("vocab_size") == _WHISPER_V3_ROWS:
        yield _WHISPER_V3, f"the name {name} and config.json's vocab_size, {_WHISPER_V3_ROWS}"
    yield by_file, f"the name {name}"
    auto_map = tokenizer_config.get("auto_map")
    classes = auto_map.get("AutoTokenizer") if isinstance(auto_map, dict) else None
    for class_name in classes if isinstance(classes, list) else [classes]:
        if isinstance(class_name, str):
            bare = class_name.rpartition("--")[2]  # behind the repository that the class may be in
            yield _BY_CLASS.get(bare), f"tokenizer_config.json's auto_map, {bare}"
    if isinstance(class_name := tokenizer_config.get("tokenizer_class"), str):
        yield _BY_CLASS.get(class_name), f"tokenizer_config.json's tokenizer_class, {class_name}"
    if isinstance(model_type := config.get("model_type"), str):
        yield _BY_MODEL_TYPE.get(model_type), f"config.json's model_type, {model_type}"
    for file in sorted(code):
        yield _BY_CODE.get(file), f"the file {file}"
