r"""Pre-tokenizers by their names in GGUF files (`tokenizer.ggml.pre`), as data.

A GGUF file names its pre-tokenizer only. The components here are those of each family's own tokenizer.json (or tiktoken
file), which llama.cpp's patterns approximate. Where they differ, the original is taken:

- llama.cpp does not normalize; Qwen, Command-R, GPT-NeoX and their descendants compose by NFC.
- Its o200k and tekken patterns tell upper from lower case by A-Z and a-z alone and leave out `\p{M}`.
- Its contractions do not match U+017F, the long s, which `(?i:'s)` does.
- Its Unicode tables are those of version 15.1, the libraries' of 16.0.
- It lacks `ignore_merges`, by which some families take a piece that is a token without merging.

An entry with a `doubt` was not compared with a tokenizer.json of its family. Its pattern is the one that llama.cpp
quotes as the original, or llama.cpp's own. Source of names and patterns: llama.cpp, src/llama-vocab.cpp (2026-11).
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tokenweir.encode.formats.known_rank_files import KIMI_PATTERN, LOWER, O200K_PATTERN, QWEN_PATTERN, UPPER
from tokenweir.encode.spec import ByteLevel, Digits, Pattern, PreTokenizer, PreTokenizerSequence, Punctuation, Split

_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_WORD, _OTHER = r"[^\r\n\p{L}\p{N}]?\p{L}+", r" ?[^\s\p{L}\p{N}]+[\r\n]*"

LLAMA3 = rf"{_CONTRACTIONS}|{_WORD}|\p{{N}}{{1,3}}|{_OTHER}|{_SPACES}"
QWEN35 = (
    rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}"
    rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_SPACES}"
)
TEKKEN = "|".join(
    [
        rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+",
        rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*",
        r"\p{N}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        _SPACES,
    ]
)
_DEEPSEEK3_DIGITS, _DEEPSEEK3_CJK = r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
_DEEPSEEK3_WORDS = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
    rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_SPACES}"
)
_DEEPSEEK_CJK = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
_DEEPSEEK_LLM_LETTERS = (
    "A-Za-z\xb5\xc0-\xd6\xd8-\xf6\xf8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376\u0377"
    "\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f"
    "\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77"
    "\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d"
    "\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb"
    "\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128"
    "\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4"
    "\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf"
    "\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3"
    "\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943"
)
_BLOOM = " ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+"


class Pre(Struct, frozen=True, kw_only=True):
    """The pre-tokenizer and the defaults that a name in `tokenizer.ggml.pre` stands for.

    Attributes:
        stages: The pre-tokenizer's parts; None if the original ones are not known.
        spelling: The spelling of tokens: in GPT-2's alphabet of bytes (`bytes`), or as text with U+2581 for spaces
            (`spaces`).
        ranks: Whether the original is a tiktoken file: the rank of a token is its id, and the file's merges are ignored.
        nfc: Whether text is normalized to form C first.
        ignore_merges: Whether a piece that is a token is taken whole, without merging.
        add_bos: Whether a beginning-of-text token is added before a text unless the file says otherwise.
        add_sep: Whether a separator is added after it, likewise.
        doubt: The reason why this entry is uncertain; empty if it was compared with the family's own file.

    """

    stages: tuple[PreTokenizer, ...] | None
    spelling: Literal["bytes", "spaces"] = "bytes"
    ranks: bool = False
    nfc: bool = False
    ignore_merges: bool = False
    add_bos: bool = False
    add_sep: bool = False
    doubt: str = ""

    @property
    def pre_tokenizer(self) -> PreTokenizer | None:
        """The pre-tokenizer of all `stages`, as a tokenizer.json would have it; None if there are no stages."""
        stages = self.stages or ()
        return stages[0] if len(stages) == 1 else PreTokenizerSequence(stages) if stages else None


def split(*patterns: str) -> tuple[PreTokenizer, ...]:
    """Return the parts of a pre-tokenizer: a split by each pattern, inside the pieces of the one before, and `ByteLevel`."""
    return (*(Split(pattern=Pattern(Regex=pattern), behavior="Isolated") for pattern in patterns), _BYTES)


_BYTES = ByteLevel(add_prefix_space=False, use_regex=False)
_GPT2 = (ByteLevel(add_prefix_space=False, use_regex=True),)
_DIGITS = Digits(individual_digits=True)
_DIGITS_GPT2 = (_DIGITS, *_GPT2)
_DEEPSEEK3 = split(_DEEPSEEK3_DIGITS, _DEEPSEEK3_CJK, _DEEPSEEK3_WORDS)

_UNSEEN = "no tokenizer.json of the family was compared; "
_ALIAS = _UNSEEN + "llama.cpp treats it like {}"
_OWN = _UNSEEN + "the pattern is llama.cpp's"
_QUOTED = _UNSEEN + "the pattern is the original that llama.cpp quotes"

_LLAMA3 = Pre(stages=split(LLAMA3), ignore_merges=True, add_bos=True)
_QWEN2 = Pre(stages=split(QWEN_PATTERN), nfc=True)
_O200K = Pre(stages=split(O200K_PATTERN), ignore_merges=True)

PRE: dict[str, Pre] = {
    "gpt-2": Pre(stages=_GPT2),
    "phi-2": Pre(stages=_GPT2),
    "roberta-bpe": Pre(stages=_GPT2, add_sep=True),
    "mpt": Pre(stages=_GPT2, nfc=True),
    "modern-bert": Pre(stages=_GPT2, nfc=True),
    "llama-bpe": _LLAMA3,
    "llama3": _LLAMA3,
    "llama-v3": _LLAMA3,
    "qwen2": _QWEN2,
    "deepseek-v3": Pre(stages=_DEEPSEEK3),
    "tekken": Pre(stages=split(TEKKEN), ignore_merges=True, add_bos=True),
    "gpt-4o": _O200K,
    "falcon": Pre(
        stages=(
            Punctuation(behavior="Contiguous"),
            *_GPT2,
            Digits(individual_digits=False),
            Split(pattern=Pattern(Regex="[0-9][0-9][0-9]"), behavior="Isolated"),
        )
    ),
    "command-r": Pre(stages=_DIGITS_GPT2, nfc=True),  # as in transformers 5, tokenization_cohere.py
    "qwen35": Pre(stages=split(QWEN35), nfc=True),  # likewise, tokenization_qwen3_5.py
    # What follows was not compared with a file of the family.
    "olmo": Pre(stages=_GPT2, nfc=True, doubt=_ALIAS.format("GPT-2; as a descendant of GPT-NeoX it composes by NFC")),
    "starcoder": Pre(stages=_DIGITS_GPT2, doubt=_OWN),
    "kimi-k2": Pre(
        stages=(
            Split(pattern=Pattern(Regex=KIMI_PATTERN), behavior="Isolated", dialect="fancy-regex", unmatched="drop"),
        ),
        ranks=True,
        doubt=_QUOTED,
    ),
    "llama4": Pre(stages=split(O200K_PATTERN), ignore_merges=True, doubt=_QUOTED),
    "deepseek-llm": Pre(
        stages=(
            *split(
                r"[\r\n]",
                rf"\s?[{_DEEPSEEK_LLM_LETTERS}]+",
                "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
                r"\s+$",
                _DEEPSEEK_CJK,
            )[:-1],
            _DIGITS,
            _BYTES,
        ),
        doubt=_OWN,
    ),
    "deepseek-coder": Pre(
        stages=(*split(r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _DEEPSEEK_CJK)[:-1], _DIGITS, _BYTES), doubt=_OWN
    ),
    "bloom": Pre(stages=split(_BLOOM), doubt=_QUOTED),
    "stablelm2": Pre(stages=split(QWEN_PATTERN), doubt=_QUOTED),
    "minicpm5": Pre(
        stages=split(r"\p{N}{1,3}", rf"{_CONTRACTIONS}|{_WORD}|\p{{N}}+|{_OTHER}|{_SPACES}"),
        ignore_merges=True,
        doubt=_QUOTED,
    ),
    "jais-2": Pre(
        stages=split(
            rf"{_CONTRACTIONS}|{_WORD}|\p{{N}}{{1,3}}|{_OTHER}|\s*[\r\n]+|"
            + "|".join(rf"\s{{{n}}}(?!\S)" for n in ("512", "256", "128", "64", "32", "16", "8", "4", "1,2"))
            + r"|\s{1}"
        ),
        doubt=_QUOTED,
    ),
    "bailingmoe": Pre(
        stages=split(
            r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]"
            r"|\s+(?!\S)|\s+"
        ),
        doubt=_QUOTED,
    ),
    "seed-coder": Pre(
        stages=split(rf"{_CONTRACTIONS}|{_WORD}|\p{{N}}{{1}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|{_SPACES}"), doubt=_QUOTED
    ),
    "exaone-moe": Pre(
        stages=split(
            rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+|\p{{N}}"
            r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"
        ),
        doubt=_QUOTED,
    ),
    "tiny_aya": Pre(stages=split(r"\d{1,3}(?=(?:\d{3})*\b)", O200K_PATTERN), doubt=_QUOTED),
    "minimax-m2": Pre(stages=split(O200K_PATTERN), doubt=_QUOTED),
    "ufakzeka": Pre(stages=split(rf"{_WORD}|\p{{N}}|{_OTHER}|{_SPACES}"), doubt=_OWN),
    "laguna": Pre(stages=split(r"[^\n]+|[\n]+", QWEN_PATTERN), doubt=_OWN),
    "viking": Pre(stages=split(_BLOOM, r"\p{N}"), doubt=_OWN),
    "superbpe": Pre(stages=split(r"\p{N}+", r"(?=(\d{3})+(?!\d))"), doubt=_OWN),
    "spark2_5": Pre(
        stages=split(
            _DEEPSEEK3_DIGITS,
            _DEEPSEEK3_CJK,
            r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
            r"| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+",
            r"\p{N}",
        ),
        doubt=_OWN,
    ),
    "youtu": Pre(
        stages=split(
            "[\uac00-\ud7a3\u3131-\u318e]+"
            "|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c\u3001-\u303f\ufe30-\ufe4f]+"
            "|[\u3105-\u312f]+|[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
            O200K_PATTERN.replace("{1,3}", ""),
        ),
        ignore_merges=True,
        doubt=_OWN,
    ),
    "chameleon": Pre(
        stages=(
            *split(
                "<sentinel:[0-9]+>",
                "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z",
                r"([\t\n]|    |  )",
                r"\p{N}",
                r"[\p{P}!-/:-@\[-`{-~]",
            )[:-1],
            *_GPT2,
        ),
        add_bos=True,
        doubt=_OWN,
    ),
    "granite-embed-multi-97m": Pre(
        stages=split(O200K_PATTERN),
        ignore_merges=True,
        doubt=_UNSEEN + "the pattern is o200k's, which llama.cpp imitates",
    ),
    # llama.cpp groups digits by code of its own and does not quote the original.
    "afmoe": Pre(stages=None),
    # BPE over text with U+2581 for spaces, as Gemma has it; llama.cpp cuts at line feeds, the original nowhere.
    "gemma4": Pre(stages=(), spelling="spaces", add_bos=True),
    "granite-embed-multi-311m": Pre(stages=(), spelling="spaces", add_bos=True, doubt=_ALIAS.format("gemma4")),
    "sarvam-moe": Pre(stages=(), spelling="spaces", doubt=_ALIAS.format("gemma4")),
}
_ALIASES = {
    "gpt-2": "jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum exaone4 jais trillion granite-docling",
    "roberta-bpe": "jina-v1-en jina-v2-code",
    "llama-bpe": "falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
    "qwen2": "deepseek-r1-qwen kormo f2llmv2 megrez",
    "stablelm2": "hunyuan solar-open grok-2",
    "deepseek-v3": "hunyuan-dense hy_v4 joyai-llm",
    "starcoder": "refact smollm codeshell exaone minerva-7b mellum2",
    "bloom": "poro-chat gpt3-finnish",
    "gpt-4o": "kanana2 talkie",
    "bailingmoe": "bailingmoe2 llada-moe",
    "tiny_aya": "cohere2moe",
}
for _name, _others in _ALIASES.items():
    for _other in _others.split():
        PRE[_other] = replace(PRE[_name], doubt=_ALIAS.format(_name))
PRE["dbrx"] = PRE["smaug-bpe"] = PRE["chatglm-bpe"] = Pre(
    stages=split(LLAMA3), doubt=_UNSEEN + "the pattern is Llama 3's"
)
PRE["glm4"] = PRE["glm5"] = replace(PRE["dbrx"], ignore_merges=True)
