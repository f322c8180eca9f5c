"""Draw the charts of the benchmarks page, and write the README's proofs, from the tables that benchmarks wrote into pages.

    python bench/charts.py            rewrites docs/benchmarks.md, docs/images/chart-*.svg and the proofs in README.md

Nothing is measured here. A chart says below it which table it shows, when and where that was measured, and what repeats it.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

import msgspec
from shared.report import PAGES, ROOT, write_between

IMAGES = ROOT / "docs" / "images"
PAGE = ROOT / "docs" / "benchmarks.md"

Row = dict[str, str]
Bars = list[tuple[str, list[tuple[str, float]]]]
"""Groups of bars: a label, and its series with their values."""

INKS = {
    "light": {"text": "#1f2328", "faint": "#656d76", "bars": ("#0969da", "#8c959f", "#bf8700")},
    "dark": {"text": "#e6edf3", "faint": "#8d96a0", "bars": ("#4493f8", "#656c76", "#d29922")},
}


class Chart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A chart.

    Attributes:
        name: The name of its files.
        title: The title on the page.
        unit: The unit of the bars.
        better: "higher" or "lower".
        marker: The name of the marks around its tables in the results.
        column: A column that its table has, which tells it from others between these marks.
        command: Repeats the measurement.
        about: A sentence for readers.
        bars: The function that makes the bars from the table's rows.
        texts: Columns of the rows of cl100k and Qwen3, if there is no such function.

    """

    name: str
    title: str
    unit: str
    better: str
    marker: str
    column: str
    command: str
    about: str
    bars: str = ""
    texts: tuple[str, ...] = ()

    def groups(self, rows: list[Row]) -> Bars:
        """Return the bars of the table's rows."""
        if self.bars:
            return DRAWN[self.bars](rows)
        chosen = [row for row in rows if row[""].startswith(("cl100k", "Qwen3"))]
        return [(f"{row['']}, {column}", pair(row[column])) for row in chosen for column in self.texts]


def number(cell: str) -> float:
    """Return the first number of a cell."""
    return float(re.findall(r"\d+(?:\.\d+)?", cell)[0])


def pair(cell: str) -> list[tuple[str, float]]:
    """Return the bars of a cell such as "135/147 fastokens = 0.92": ours and the best peer's."""
    ours, peer, name = re.match(r"([\d.]+)/([\d.]+) (\S+) =", cell).groups()  # type: ignore[union-attr]
    return [("tokenweir", float(ours)), (f"best peer ({name})", float(peer))]


def threads(rows: list[Row]) -> Bars:
    """Draw batches of 2 KB and of 64 MB on 16 threads."""
    names = ("tokenweir, 16", "gigatoken, 16", "fastokens, 16")
    return [
        (row[""], [(name.partition(",")[0], number(row[name])) for name in names])
        for row in rows
        if row[""].startswith(("1024", "64 MB"))
    ]


def device(rows: list[Row]) -> Bars:
    """Draw batches on the device beside the best library on 16 threads."""
    drawn = []
    for row in rows:
        peers = [number(row[name]) for name in row if name.endswith(", 16") and "tokenweir" not in name]
        ours = [("ids on the device", number(row["exact, on the device"])), ("Arrow in, ids out", number(row["Arrow"]))]
        drawn.append((row[""], [*ours, ("best CPU peer, 16 threads", max(peers))]))
    return drawn


def turns(rows: list[Row]) -> Bars:
    """Draw turn 200 of the conversations whose prompts the peers get right."""
    return [
        (
            row["template"].removeprefix("deepseek-ai-").removeprefix("meta-llama-"),
            [("tokenweir", number(row["turn 200"])), ("peers", number(row["peers"]))],
        )
        for row in rows
        if "(" not in row["peers"]
    ]


def streams(rows: list[Row]) -> Bars:
    """Draw the CPU time of a token by the number of streams."""
    names = {"tokenweir, websocket": "tokenweir", "websockets, one frame a token": "bare websockets"}
    counts = dict.fromkeys(row["streams"] for row in rows)
    return [
        (
            f"{count} streams",
            [
                (names[row["server"]], number(row["µs a token"]))
                for row in rows
                if row["streams"] == count and row["server"] in names
            ],
        )
        for count in counts
    ]


def loading(rows: list[Row]) -> Bars:
    """Draw the time from a file to the first ids."""
    ours = {"from the cache": "tokenweir, its cache", "from the file": "tokenweir, the file", "best peer": "best peer"}
    return [(row[""], [(name, number(row[column])) for column, name in ours.items()]) for row in rows]


DRAWN = {one.__name__: one for one in (threads, device, turns, streams, loading)}
CHARTS = msgspec.toml.decode(Path(__file__).with_suffix(".toml").read_bytes(), type=dict[str, list[Chart]])["chart"]


def tables(text: str, marker: str) -> list[tuple[list[Row], str]]:
    """Return the tables between two marks, each with the line below it that names date, machine and versions."""
    part = text.partition(f"<!-- {marker}:begin -->")[2].partition(f"<!-- {marker}:end -->")[0]
    dates = re.findall(r"^(.*\d{4}-\d\d-\d\d, .*)$", part, re.MULTILINE)
    found = []
    for block in re.findall(r"(?:^\|.*\n?)+", part, re.MULTILINE):
        header, rows = _cells(block.splitlines()[0]), [_cells(line) for line in block.splitlines()[2:]]
        after = [date for date in dates if part.index(date) > part.index(block)]
        found.append(([dict(zip(header, row, strict=True)) for row in rows], (after or dates)[0]))
    return found


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def draw(chart: Chart, bars: Bars, look: str) -> str:
    """Return the SVG of a chart in one look, "light" or "dark"."""
    ink = INKS[look]
    most = max(value for _, series in bars for _, value in series)
    names = list(dict.fromkeys(re.sub(r" \(.*", "", name) for _, series in bars for name, _ in series))
    left, width, y = 210, 420, 44
    parts = []
    for place, name in enumerate(names):
        x = left + 150 * place
        parts.append(f'<rect x="{x}" y="14" width="10" height="10" rx="2" fill="{ink["bars"][place]}"/>')
        parts.append(f'<text x="{x + 16}" y="23" fill="{ink["text"]}">{escape(name)}</text>')
    for label, series in bars:
        middle = y + 7 * len(series) + 4
        parts.append(
            f'<text x="{left - 10}" y="{middle}" text-anchor="end" fill="{ink["text"]}">{escape(label)}</text>'
        )
        for name, value in series:
            place = names.index(re.sub(r" \(.*", "", name))
            length = max(1.0, width * value / most)
            parts.append(
                f'<rect x="{left}" y="{y}" width="{length:.1f}" height="12" rx="2" fill="{ink["bars"][place]}"/>'
            )
            note = f"{value:g}" + (f" {name[name.index('(') + 1 : -1]}" if "(" in name else "")
            parts.append(f'<text x="{left + length + 6:.1f}" y="{y + 10}" fill="{ink["faint"]}">{escape(note)}</text>')
            y += 14
        y += 8
    better = f"{chart.unit}, {chart.better} is better"
    parts.append(f'<text x="{left}" y="{y + 10}" fill="{ink["faint"]}">{escape(better)}</text>')
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="760" height="{y + 22}" viewBox="0 0 760 {y + 22}" role="img"'
    )
    style = 'font-family="system-ui, sans-serif" font-size="12"'
    title = f"<title>{escape(f'{chart.title}: {better}')}</title>"
    return "\n".join((f"{head} {style}>", title, *parts, "</svg>", ""))


def proofs(results: str) -> str:
    """Return the README's proofs but the first, each a sentence with its figures and the command that repeats it."""
    cases = [row for rows, _ in tables(results, "museum") for row in rows]
    wrong = {}
    for engine in ("tokenweir", "vLLM", "SGLang"):
        cells = [cell for row in cases for name, cell in row.items() if name.startswith(f"{engine} ")]
        wrong[engine] = sum(cell not in ("right", "-") for cell in cells)
    tried, _ = next(found for found in tables(results, "origins") if "tried" in found[0][0])
    attacks, through = (sum(int(row[name].replace(",", "")) for row in tried) for name in ("tried", "succeeded"))
    turn = next(chart for chart in CHARTS if chart.name == "turn")
    rows, _ = next(found for found in tables(results, turn.marker) if turn.column in found[0][0])
    ours, peers = ([series[at][1] for _, series in turn.groups(rows)] for at in (0, 1))
    warm, _ = next(found for found in tables(results, "fastest-throughput"))
    (_, core), (_, peer) = pair(next(row["warm"] for row in warm if row[""] == "cl100k, English"))
    batch, _ = next(found for found in tables(results, "gpu") if "exact, on the device" in found[0][0])
    row = next(row for row in batch if row[""] == "64 MB, English")
    lines = (
        f"2. [{len(cases)} streams](docs/explanation/streaming-bugs.md) from the bug reports of other projects: {wrong['tokenweir']} wrong here, {wrong['vLLM']} in vLLM, ",
        f"{wrong['SGLang']} in SGLang. `scripts/bench museum`\n",
        f"3. [{attacks:,} attacks](docs/explanation/injections.md) by user text on {tried[0]['templates']} chat templates: {through} became a ",
        "control token. `scripts/bench origins`\n",
        f"4. The next turn of a conversation of 250,000 ids: {min(ours):.1f} to {max(ours):.1f} ms, where peers take {min(peers):.0f} to ",
        f"{max(peers):.0f}. `scripts/bench conversations`\n",
        f"5. English by cl100k: {core / 1000:.2f} GB/s a core (best peer {peer / 1000:.2f}), and on an H100 {number(row['str']):.1f} GB/s ",
        f"from strings to ids, {number(row['exact, on the device']):.0f} for text on the device (16 cores of the best peer: ",
        f"{number(row['gigatoken, 16']):.1f}). `scripts/bench encode`, `scripts/gpu_day`",
    )
    return "".join(lines)


HEAD = """
# Benchmarks

Charts of the tables in `bench/RESULTS.md` and `bench/serving/RESULTS.md`, drawn by `python bench/charts.py`. Every figure was measured beside
its peers in one run. A ratio says how many times faster than the peer, and is good to about a tenth: the machines are virtual ones with 2 cores
that other work shares. Their speed changes within minutes, so compare figures of one table only.

`scripts/bench NAME --write` measures a table again and writes it; the top of the benchmark's file says how it measures. Libraries take turns, in
the same minutes. Cold and unseen texts and loading happen once in a process, so their ratio of one run is good to a quarter, and the table of
throughput has medians of three. `scripts/bench encode --beside reference` measures beside the reference libraries.

What was compared for correctness: [ids and texts](explanation/exactness.md#how-it-is-shown), [reported bugs of
streams](explanation/streaming-bugs.md), [attacks on templates](explanation/injections.md).
"""


def main() -> None:
    """Write the charts, their page, and the README's proofs."""
    results = "".join(page.read_text("utf-8") for page in PAGES)
    page = [HEAD.strip()]
    for chart in CHARTS:
        rows, when = next(found for found in tables(results, chart.marker) if chart.column in found[0][0])
        bars = chart.groups(rows)
        for look in INKS:
            (IMAGES / f"chart-{chart.name}-{look}.svg").write_text(draw(chart, bars, look), encoding="utf-8")
        page += [
            "",
            f"## {chart.title}",
            "",
            f"{chart.about} {chart.unit[0].upper()}{chart.unit[1:]}; {chart.better} is better.",
            "",
            *(
                f"```{{image}} images/chart-{chart.name}-{look}.svg\n:class: only-{look}\n:alt: {chart.title}\n```"
                for look in INKS
            ),
            "",
            f"Measured: {when.strip()}. Repeat it: `{chart.command}`.",
        ]
    write_between(ROOT / "README.md", "proofs", proofs(results))
    PAGE.write_text("\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
