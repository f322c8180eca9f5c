"""Formulas, which KaTeX makes nodes of, and code in colours."""

import asyncio
import re
from itertools import pairwise
from pathlib import Path

from case_tables import cases
from full_run import FULL
from page_in_browser import answer, ask, chatting, connected, send
from playwright.async_api import expect
from serving import Script

from tokenweir.stream.serve import page as page_package

CASES = cases(__file__)

PAGE = Path(page_package.__file__).parent

FORMULAS = r"""Euler: $e^{i\pi}+1=0$ and \(x^2\).

$$
\int_0^1 x\,dx = \frac{1}{2}
$$

"""


async def test_formulas_are_typeset_as_they_come_and_loaded_once(browser):
    end = asyncio.Event()
    async with chatting(browser, Script(FORMULAS, end, "$y$", "<|im_end|>")) as page:
        asked = []
        page.on("request", lambda request: asked.append(request.url.partition("/page/")[2]))
        await page.reload()
        await connected(page)
        assert not any("katex" in name for name in asked)  # no message has a formula yet
        await send(page, "hi")
        await expect(page.locator(".answer .math.set .katex")).to_have_count(3)
        assert await page.locator("div.math .katex-display").count() == 1
        end.set()
        await expect(page.locator(".answer .math.set")).to_have_count(4)
        assert [name for name in asked if "katex" in name].count("vendor/katex/katex.js") == 1
        await expect(page.locator("annotation").first).to_have_text(r"e^{i\pi}+1=0")
        fonts = await page.evaluate("document.fonts.load('16px KaTeX_Main').then((fonts) => fonts.length)")
        assert fonts == 1, "the font cannot be loaded"


HOSTILE = {
    "unknown command": r"$\nothing{x}$",
    "address": r"$\href{javascript:alert(1)}{x}$",
    "picture": r"$\includegraphics{http://127.0.0.1:9/x.png}$",
    "attribute": r"$\htmlStyle{color: red}{x}$",
    "endless macro": r"$\def\a{\a\a}\a$",
    "unclosed": "$$\nx",
    "empty": "$$ $$",
    "long": "$" + "x+" * 2000 + "x$",
}


async def test_what_cannot_be_typeset_stays_text_and_loads_nothing(browser):
    engine = Script()
    async with chatting(browser, engine) as page:
        for name, source in HOSTILE.items():
            engine.parts = (f"{source}\n\nand $y$", "<|im_end|>")
            await ask(page, "hi")
            await expect(answer(page).locator(".math.set").last).to_contain_text("y")
            assert await answer(page).locator(":is(a, img, [style*=red], [href^=javascript])").count() == 0
            if name not in ("address", "picture", "attribute"):  # which KaTeX shows as their names
                assert source.strip() in await answer(page).locator(".answer").text_content()


X400, SQRT, TEXT = "x" * 400, r"\sqrt1" * 200, r"\text{" + "é" * 1000 + "}"
DEFINITIONS = [
    rf"\{define}{body}" + r"\a" * 190
    for body in (X400, SQRT, TEXT)
    for define, body in [
        *((name, rf"\a{{{body}}}") for name in ("def", "gdef", "edef", "xdef", r"global\def", r"long\def")),
        *((name, rf"{{\a}}{{{body}}}") for name in ("newcommand", "renewcommand", "providecommand")),
        ("newcommand", rf"\a{{{body}}}"),
        ("def ", rf"\a {{{body}}}"),
        ("let", r"\a=\sqrt"),
        ("futurelet", r"\a\sqrt x"),
        ("renewcommand", r"{\arraystretch}{100000}"),
        ("def", r"\arraystretch{100000}"),
    ]
] + [rf"\{name}{{x}}" for name in ("message", "errmessage", "show")]  # they write to the console
SHOWN = """async (sources) => {
    const { formula } = await import("./page/answer/formulas.js");
    const nodes = sources.map((source) => formula(source, true));
    document.body.append(...nodes);
    while (nodes.at(-1).childElementCount === 0) await new Promise((go) => setTimeout(go, 10));
    const shown = nodes.map((node) => [node.querySelectorAll("*").length, node.classList.contains("set"), node.textContent]);
    nodes.forEach((node) => node.remove());
    return shown;
}"""


async def shown(page, formulas):
    """Return the number of nodes, whether it is typeset, and the text of each formula."""
    found = []
    for begin in range(0, len(formulas), 200):  # a page of all of them would be laid out again and again
        part = [*formulas[begin : begin + 200], f"y + {begin}"]  # the last one is new, and so waits for the others
        found += (await page.evaluate(SHOWN, [f"$${formula}$$" for formula in part]))[:-1]
    return found


async def test_a_formula_that_defines_a_macro_stays_source(browser):
    async with chatting(browser, Script()) as page:
        formulas = [formula for formula in DEFINITIONS if len(formula) < 1990]
        assert len(formulas) > 25
        found = await shown(page, formulas)
        assert found == [[0, False, f"$${formula}$$"] for formula in formulas]


SHAPES = {
    "{x}": lambda command, size: (command + "{x}") * (size // (len(command) + 3)),
    "{x}{y}": lambda command, size: (command + "{x}{y}") * (size // (len(command) + 6)),
    "nested": lambda command, size: nested(command + "{", "}", size),
    "nested first": lambda command, size: nested(command + "{", "}{y}", size),
    "nested last": lambda command, size: nested(command + "{y}{", "}", size),
    "powers": lambda command, size: nested("x^{" + command + " ", "}", size),
}
MOST_NODES = 10
"""Nodes a character: of three dots above a letter, and of KaTeX's own name, there are some eight."""


def nested(opening, closing, size):
    depth = size // (len(opening) + len(closing))
    return opening * depth + "x" + closing * depth


async def test_the_nodes_of_a_formula_are_proportional_to_its_length(browser):
    """Of each command that KaTeX has, in several shapes."""
    source = (PAGE / "vendor/katex/katex.js").read_text()
    commands = sorted(set(re.findall(r'"\\(\\(?:[A-Za-z@]+|[^A-Za-z@]))"', source)))
    assert len(commands) > 1000 and {r"\sqrt", r"\dddot", r"\text", r"\mathchoice"} < set(commands)
    formulas = [shape(command, 40) for command in commands for shape in SHAPES.values()][:: 1 if FULL else 15]
    async with chatting(browser, Script(), clean=False) as page:
        found = await shown(page, formulas)
    many = [
        (formula, nodes)
        for formula, (nodes, _, _) in zip(formulas, found, strict=True)
        if nodes > MOST_NODES * len(formula) + 20
    ]
    assert many == []
    assert sum(is_set for _, is_set, _ in found) > len(formulas) / 4


IN_TURN = """async (sources) => {
    const { formula } = await import("./page/answer/formulas.js");
    const nodes = sources.map((source) => formula(source, true));
    const set = () => nodes.filter((node) => node.classList.contains("set")).length;
    document.body.append(...nodes);
    const counts = [set()];
    await null;
    counts.push(set());
    while (set() < nodes.length) {
        const before = set();
        await new Promise((go) => setTimeout(go));
        if (set() > before) counts.push(set());
    }
    const again = formula(sources[0], true);
    return [counts, again.classList.contains("set")];
}"""


async def test_many_formulas_are_typeset_a_few_at_a_time(browser):
    """So a conversation that is opened again leaves the page alive, however many formulas it has."""
    async with chatting(browser, Script()) as page:
        await shown(page, ["x"])  # loads KaTeX
        counts, at_once = await page.evaluate(IN_TURN, [f"$${'x+' * 900}{number}$$" for number in range(8)])
        assert counts[:2] == [0, 3] and counts[-1] == 8
        assert max(later - earlier for earlier, later in pairwise(counts)) <= 3 * 2  # two turns may come between
        assert at_once


async def test_a_large_size_is_bounded(browser):
    async with chatting(browser, Script(r"$\rule{9999em}{9999em}$", "<|im_end|>")) as page:
        await ask(page, "hi")
        await page.locator(".math.set").wait_for()
        assert (
            await page.locator(".math.set .katex-html").evaluate("(node) => node.getBoundingClientRect().width") < 1000
        )


CODE = '''def area(radius):
    # of a circle
    text = """one
two"""
    return 3.14 * radius ** 2, "a # b"
'''


async def test_code_has_colours_once_it_is_closed(browser):
    end = asyncio.Event()
    async with chatting(browser, Script(f"```python\n{CODE}", end, "```\n", "<|im_end|>")) as page:
        await send(page, "hi")
        code = page.locator(".code code")
        await expect(code).to_contain_text("a # b")
        assert await code.locator("span span").count() == 0
        end.set()
        kinds = {
            "keyword": ["def", "return"],
            "comment": ["# of a circle"],
            "string": ['"""one\ntwo"""', '"a # b"'],
            "number": ["3.14", "2"],
        }
        for kind, texts in kinds.items():
            await expect(code.locator(f".code-{kind}")).to_have_count(len(texts))
            assert await code.locator(f".code-{kind}").all_text_contents() == texts
        assert await code.text_content() == CODE.removesuffix("\n")


SAMPLES = CASES["samples"]
STRETCHES = """async ([language, code]) => {
    const { stretches } = await import("./page/answer/highlight.js");
    return stretches(code, language)?.map(([start, end, kind]) => [code.slice(start, end), kind]) ?? null;
}"""


async def test_languages(browser):
    async with chatting(browser, Script()) as page:
        for language, (code, wanted) in SAMPLES.items():
            found = await page.evaluate(STRETCHES, [language, code])
            assert found == (wanted if wanted is None else [list(one) for one in wanted]), language


WORK = """async (pieces) => {
    const { stretches } = await import("./page/answer/highlight.js");
    const names = ["py", "js", "sh", "sql", "ruby", "lua", "json", "yaml", "html", "css"];
    for (const name of names) for (const piece of pieces) {
        for (const code of [piece.repeat(20_000 / piece.length), `x${piece.repeat(19_000 / piece.length)}`]) {
            const found = stretches(code, name);
            let last = 0;
            for (const [start, end] of found) {
                if (start < last || end <= start || end > code.length) return `${name} ${piece}`;
                last = end;
            }
        }
    }
    return "";
}"""


async def test_hostile_code_is_read_in_order(browser):
    """Repetition in which a pattern could look far ahead from every place; the test's time limit tells."""
    pieces = CASES["hostile_code_is_read_in_order"]
    async with chatting(browser, Script()) as page:
        assert await page.evaluate(WORK, pieces) == ""
