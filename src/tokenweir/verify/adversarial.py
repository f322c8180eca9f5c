"""Adversarial strings: seeded generators of the text that tokenizers get wrong.

Each kind is an alphabet of fragments which are drawn, repeated and joined at random, so that every class of character
meets every other at the boundaries where pre-tokenizers, normalizers and added tokens disagree. The kinds and the
fragments come from differences that were really found between tokenizer libraries.

Characters that an editor would hide, reorder or compose are written as escapes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

# The 25 characters with the White_Space property: what `\s` means in Oniguruma, fancy-regex and Rust.
WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
# What some library takes for white space although it is not: `str.isspace()`, older Unicode versions, byte order marks.
NEARLY_WHITE_SPACE = "\x1c\x1d\x1e\x1f\u180e\u200b\u200c\u200d\u2060\ufeff"


def _words(text: str) -> list[str]:
    return text.split(" ")


# Neighbours that every kind meets.
_PLAIN = (" ", "  ", "\n", "\r\n", "a", "B", "1", ".", "é", "中")

FRAGMENTS: dict[str, tuple[str, ...]] = {
    "white space": (
        *(*_PLAIN, *WHITE_SPACE, *WHITE_SPACE, *NEARLY_WHITE_SPACE),
        *("\n\n", "    ", " \n", "\n ", "\t\t", "\r\r\n", "\u2028\n", "\u3000\u3000", "\x85\n"),
    ),
    "contractions": (
        *(*_PLAIN, *"''''\u2019\u02bc`´＇ʻ"),
        *_words("s t re ve m ll d S T RE Re rE VE M LL lL D l r v \u017f \u212a \u0131 sd"),
        *_words("\u2019s '\u017f '\u017ft '' 's' don I you _ \u0301 it'S y'all'd've"),
        *("' ", " '", "\n'", "'\n"),
    ),
    "digits": (
        *(*_PLAIN, *"0123456789"),
        *_words("12 123 1234 00 3.14 1,000 1e9 0x1F -1 1st 2nd , / : % $ 〇 一 万 \u066b \u066c \u0301 \u20e3"),
        *"٠١٩۴۵०१९০৯௧௰๑๙០៩𝟎𝟗𝟘𝟡𞥐𞥙᠐᠙𐒠𑁦",  # decimal digits of other scripts
        *"²³¹⁰₉½¾⅓⅐ⅠⅫⅷↀ①⑳⓪❶㉈㊿𐄇𒐀𐅀𐹠",  # numbers that are no decimal digits
    ),
    "normalization": (
        *(*_PLAIN, *"eiouAqêÅöḍṩếǖάΐёйかがはばぱハﬁ…\u00a8"),
        *"\u0300\u0301\u0302\u0304\u0307\u0308\u030a\u0323\u0327\u0328\u0338\u0315\u031b\u0345\u0342\u0313\u0334",
        *"\u0591\u05b0\u05bc\u064b\u0651\u0340\u0341\u0343\u0344\u0374\u037e\u0387\u034f\u200d\u1fef\u2000\u2001",
        *"\u2126\u212a\u212b\u2329\u232a\u2adc\uf900\uf901\ufa0e\ufb1d\ufb1f\ufb2a\U0002f800\U0002fa1d",
        *"\u0958\u0929\u093c\u0915\u0928\u09c7\u09be\u09cb\u0b47\u0b56\u0bc6\u0cc6\u0cc2\u0cd5\u0dd9\u0dca\u0dcf",
        *"\u0f71\u0f72\u0f73\u0f74\u0fb2\u1025\u102e\u1b05\u1b35\u3099\u309a",
        *"\u1100\u1101\u1112\u1161\u1175\u11a7\u11a8\u11c2\uac00\uac01\ud7a3",  # Hangul L, V, T, LV, LVT
        *"\U00011131\U00011127\U00011347\U0001133e\U000114b9\U000114ba\U0001d15e\U0001d165",
        *"\U00011935\U00011930\U000105d2\U00016121\U00016123\U000113c2",  # composed by Unicode 13 to 16 only
    ),
    "emoji": (
        *(*_PLAIN, *"😀👩👨👧🏽🏿❤🔥🏳🌈🏴☠✊🧑🚀🦰👍💻🇩🇪🇺🇸©™#*!\u200d\u200d\ufe0f\ufe0e\u20e3"),
        *_words("👩\u200d💻 👨\u200d👩\u200d👧\u200d👦 ❤\ufe0f\u200d🔥 🏳\ufe0f\u200d🌈 👍🏽 1\ufe0f\u20e3 🇩🇪"),
        *_words("\U000e0067 \U000e007f 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"),
    ),
    "punctuation": (
        *(*_PLAIN, *"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
        *"¡§«·»¿–—‘’“”†•…‰′‹›⁄₿€£¥←→∀∑≠⌘─█■★♥✓、。〈〉「」・！，：；？～｜￥｡𐄀𝄞𝛁﷼",
        *_words("// /* */ -> => :: && ... ---- ==== !? };"),
        *("/\n", "\n/", "//\n\n", ")\r\n"),
    ),
    "case": (
        *(*_PLAIN, *"zZÉßñÑжЖяЯαΑωΩაႠᲐꭰᎠꮿՀհԱａＡ𐐀𐐨𝐀𝐚𞤀𞤢"),
        *"\u017f\u212a\u212b\u0130\u0131ŒǅǈǋǲᾈᾼΣςσﬁŉǰẞªºʰˠⱽᵃ々ー\u0345\u0301\u0308\u3099אعกあア漢한हதአ_-/'",
        *_words("camelCase PascalCase SCREAMING iPhone XMLHttp McD LaTeX eBay ÉCOLE ßS ΣΑΣ 's 'S 'Ll '\u017f 't"),
    ),
    "scripts": (
        *(*_PLAIN, *"\u3000\u200b。，２（）-々〇㐀\u9fa5\u9fa6\U00020000\U0002a6d6𠮷゠゛ゟヿーｱㄱ\u0640ꙮⵣ"),
        *_words("the Token x 国 漢字 の ひらがな カタカナ 한국어 ไทย ก็ ລາວ မြန်မာ ខ្មែរ हिन्दी क्ष தமிழ் বাংলা తెలుగు ಕನ್ನಡ"),
        *_words("മലയാളം සිංහල ગુજરાતી ਪੰਜਾਬੀ བོད་ཡིག አማርኛ العربية لا فارسی می\u200cشود עברית שָׁלוֹם ܣܘܪܝܝܐ Ελλάδα"),
        *_words("Россия Հայերեն ქართული ᏣᎳᎩ ᐃᓄᒃ 𐌰𐌱 𒀀𒁀 𓀀𓂀 ߒߞߏ 𞤀𞤣 Tiếng Việt naïve Łódź 's"),
    ),
    "controls": (
        *(*_PLAIN, *map(chr, range(0x20)), *map(chr, range(0x7F, 0xA1)), "\x00\x00", "\x1b[31m", "\x1b[0m"),
        *"\xad\u061c\u0600\u06dd\u070f\u200e\u200f\u202a\u202e\u2061\u2066\u2069\u206a\ufff9\ufffb\u0378\u2fe0",
        *"\ufdd0\ufdef\ufffe\uffff\ufffd\ufffc\U0001fffe\U0010ffff\U0010fffd",  # noncharacters, replacement
        *"\ue000\uf8ff\U000f0000\U00100000\U0003fffd\U000e0001\U000e01ef\ufe00\U0001d173",
    ),
    "ASCII": (*map(chr, range(0x20, 0x7F)), "the ", "and ", " of", "ing", "\n"),
    "byte fallback": (  # characters that a vocabulary of 32,000 pieces lacks, and text that looks like its byte tokens
        *(*_PLAIN, *"\u2581\x00\x01\x7f\u0378\ufffd\ufffe\U0010ffff\ue000龘靐齉𠮷𪚥ꙮ꧁꧂𒀀𓀀𐌰🜁🀄🫠🇩🧿\u200d\ufe0f\u20e3"),
        *_words("<0x0A> <0xE4> <0xe4> <0x> 0x0A> <unk> <s> </s> <pad> [UNK] ⁇ \u2047 🫡🫡 ᚠᚢ ㋿"),
    ),
    "SentencePiece": (  # spaces written and meant, and what its character maps touch
        *(
            *_PLAIN,
            *"\u2581\u2581\u2581___",
            "\u2581a",
            " \u2581",
            "\u2581 ",
            "\u2581\u2581",
            "a\u2581b",
            "   ",
            "...",
            "....",
            "''",
        ),
        *"\u3000\u00a0\u00ad\u200b\u200e\ufeff\u0085\t\x07\x1f\x7f\ufffdﬁﬀﬃ①½㎏㍻㋿ｱﾞｶﾞＡ１！～〜\uff5e゛ヷ㌔ℌ℡™…‥＂\u0340\u1e9b\u0323",
        *_words(
            "ﬁ\u0301 \u00a0\u200d ｶ\u3099 が\u3099 e\u0301 \u0301\u0301 \u0e33\u0e48 👩\u200d💻 \u1100\u1161\u11a8 l ll lll ss the The ing"
        ),
    ),
    "BERT": (  # cleaning, splitting, continuation
        *(
            *_PLAIN,
            *"##$+<=>^`|~[]{}()-_'\"!?.,;:",
            "##ing",
            "un",
            "##",
            "# #",
            "[CLS]",
            "[SEP]",
            "[MASK]",
            "[UNK]",
            "[unk]",
            "x" * 99,
            "y" * 101,
        ),
        *"\x00\ufffd\x01\x7f\x80\x9f\xad\u200b\u200d\u2028\u2029\u0600\u06dd\u070f\u08e2\u110bd\ue000\u0378\u2b81\U0002b820\U0002b91f\U0002b920",
        *"\u4dff\u4e00\u9fff\ua000\uf900\ufaff\U00020000\U0002a6df\U0002f800\U0002fa1f\u3000ー々〇",
        *"ÀéîõüÇŁØßİıΣσςΆЙёЁґ\u0301\u0308\u0327\u0489\u0903\u093f\u20dd\u302a\u1abe\U0001e944Ǆ\u166d\U000111c9·¡¿§«»“”‘’—",
        *_words("Don't can't I'm do not n't 's 've 're running Playing unaffable naïve CAFÉ"),
    ),
    "code": (
        *(*_PLAIN, "def ", "if (x ", "== ", "!= ", "    ", "        ", "\t", "\t\t", "\n\n", "\n    ", "=> ", "| "),
        *_words("self. return { } (); [] -> #include < // /* */ ''' \" \\n \\u00e9 0x 1_000 ``` ** --- 变量 #! i x1"),
        *_words("snake_case camelCase __init__ HTTPServer2 $var @decorator <div> </div> &nbsp; http:// www. .com/"),
        *_words("?q= %20 C:\\ ../ ~/ a@b.c"),
    ),
}


def _joined(rng: Random, fragments: Sequence[str]) -> str:
    count = rng.randint(1, 24)
    return "".join(rng.choice(fragments) * rng.choice((1, 1, 1, 1, 2, 3, 7)) for _ in range(count))


def _long_runs(rng: Random, fragments: Sequence[str]) -> str:
    """Return a few fragments repeated hundreds of times, on which a merge loop may be quadratic or a cache key too long."""
    motif = "".join(rng.choices(fragments, k=rng.choice((1, 1, 1, 2, 3))))
    run = motif * (rng.choice((15, 16, 17, 31, 64, 255, 300)) // len(motif) + 1)
    return rng.choice(("", " ", "a", "\n")) + run + rng.choice(("", " ", "b", "\n", rng.choice(fragments)))


def _code_points(rng: Random, _fragments: Sequence[str]) -> str:
    """Return random characters of all planes, half of them alone and half in runs of neighbouring code points."""
    characters: list[str] = []
    for _ in range(rng.randint(1, 16)):
        start, stop = rng.choice(((0, 0x3000), (0, 0x10000), (0, 0x10000), (0x10000, 0x20000), (0x20000, 0x110000)))
        code = rng.randrange(start, stop)
        neighbours = rng.choice((1, rng.randint(2, 6)))
        codes = (min(code + rng.randint(0, 40), 0x10FFFF) for _ in range(neighbours - 1))
        characters += [chr(c) for c in (code, *codes) if not 0xD800 <= c < 0xE000]
    return "".join(characters)


def _special_tokens(rng: Random, fragments: Sequence[str]) -> str:
    """Return special tokens whole, cut short, doubled, in the wrong case, and with text and marks right beside them."""
    others = (*_PLAIN, *_words("\u0301 \u200d _ < | > <| |> ' Hello \x00"))
    parts: list[str] = []
    for _ in range(rng.randint(1, 8)):
        token = rng.choice(fragments)
        cut = rng.randint(0, len(token))
        edits = (token, token, token[:cut], token[cut:], token.upper(), token[:cut] + rng.choice(others) + token[cut:])
        parts += rng.choice(edits), *rng.choices(others, k=rng.choice((0, 0, 1, 2)))
    return "".join(parts)


KINDS = (*FRAGMENTS, "vocabulary", "everything", "long runs", "code points", "special tokens")


def strings(
    count: int, *, seed: str, special_tokens: Sequence[str] = (), vocabulary: Sequence[str] = ()
) -> dict[str, list[str]]:
    """Return at least `count` adversarial strings by kind, spread evenly over `KINDS`; equal arguments give equal strings.

    Args:
        count: The number of strings in all.
        seed: Any text; give each tokenizer its own, so that together they see more.
        special_tokens: The tokenizer's added tokens; without any, some well-known ones.
        vocabulary: The text of its tokens; kind `vocabulary` joins them where the merges would not.

    """
    special_tokens = special_tokens or ("<|endoftext|>", "<|im_start|>", "<s>", "</s>", "<think>")
    known = tuple(fragment for fragments in FRAGMENTS.values() for fragment in fragments)
    some = vocabulary[:: len(vocabulary) // len(known) + 1]
    generators: dict[str, tuple[Callable[[Random, Sequence[str]], str], Sequence[str]]] = {
        **{kind: (_joined, fragments) for kind, fragments in FRAGMENTS.items()},
        "vocabulary": (_joined, vocabulary or known),
        "everything": (_joined, (*known, *some, *special_tokens[:50])),
        "long runs": (_long_runs, known),
        "code points": (_code_points, ()),
        "special tokens": (_special_tokens, special_tokens),
    }
    each = -(-count // len(KINDS))
    made = {}
    for kind in KINDS:
        generate, fragments = generators[kind]
        rng = Random(f"{seed}/{kind}")
        made[kind] = [generate(rng, fragments) for _ in range(each)]
    return made


def every_code_point(every: int = 1) -> list[str]:
    """Return texts with 64 code points each, beside letters, digits, spaces and apostrophes: all planes that hold characters.

    Only one in `every` texts is returned.
    """
    starts = (*range(0, 0xD800, 64), *range(0xE000, 0x40000, 64), *range(0xE0000, 0xF0000, 64))
    return ["".join(f"{c}a {c}1{c}'{c}s" for c in map(chr, range(start, start + 64))) for start in starts[::every]]
