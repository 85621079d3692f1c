"""The pictures of the pages, as SVG. What they show is read from its one home: docs/measured.md and pyproject.toml."""

import re
import tomllib
from pathlib import Path

from atdp_cli.reporting.charts import drawing, drawn_line, drawn_text

ROOT = Path(__file__).parent.parent
BEFORE, AFTER, GROUND = "#b3261e", "#1b6e3c", "#f3f3f3"
CHANCE = 1.44
"""Mean exposure of a secret that nobody remembers, bits."""


def measured(heading: str, name: str) -> list[str]:
    """The cells of a row of docs/measured.md, by the row's name, in the tables under a heading."""
    page = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8")
    rows = [line for line in page.partition(f"\n## {heading}\n")[2].splitlines() if line.startswith("|")]
    tables = [[cell.strip().strip("*") for cell in row.strip("|").split(" | ")] for row in rows]
    return next(cells for cells in tables if cells[0].strip() == name)


def number(cell: str) -> float:
    """The first number of a cell."""
    found = re.search(r"[0-9.]+", cell)
    assert found is not None, cell
    return float(found[0])


def before_after() -> str:
    """One model as it was fine-tuned and as it was hardened: what it tells, and what it can do."""
    leaky = measured("A larger model", "`no-dp`")
    hardened = measured("A larger model", "the default from the base")
    named = [number(measured("What the model can still do", name)[1]) for name in ("`no-dp`", "`fitted-decoys`")]
    chance = _bits(CHANCE)
    body = [
        drawn_text(
            16, 28, "Planted secrets that the model gives away, and the audit's verdict", anchor="start", weight="bold"
        ),
        *_bar(44, "fine-tuned", 22 * number(leaky[1]), f"{number(leaky[1]):g} bits", BEFORE, verdict=leaky[6]),
        *_bar(80, "hardened", 22 * number(hardened[1]), f"{number(hardened[1]):g} bits", AFTER, verdict=hardened[6]),
        drawn_line(chance, 38, chance, 114, "#222", dashed=True),
        drawn_text(chance, 130, f"chance, {CHANCE} bits", anchor="start"),
        drawn_text(16, 168, "Names that it says correctly, and what it costs", anchor="start", weight="bold"),
        *_bar(182, "fine-tuned", 3 * named[0], f"{named[0]:.0f} %, perplexity × {number(leaky[4]):.2f}", BEFORE),
        *_bar(218, "hardened", 3 * named[1], f"{named[1]:.0f} %, perplexity × {number(hardened[4]):.2f}", AFTER),
        f'<g font-size="12">{drawn_text(16, 272, SOURCE, anchor="start")}</g>',
    ]
    said = (
        f"Fine-tuned: {leaky[1]} bits, {leaky[6]}. Hardened: {hardened[1]} bits, {hardened[6]}; {named[1]:.0f} % of "
        f"names said correctly, {named[0]:.0f} % before; perplexity {hardened[4]} times as high."
    )
    drawn = "\n".join(body)
    return drawing("Before and after", said, f'<g font-size="16">\n{drawn}\n</g>', width=640, height=284)


SOURCE = "SmolLM2-135M, 304 chats, 20 secrets, mean exposure by log p; names: its Instruct version, 200 chats."
"""What was measured; the rest stands on the page of measurements."""


def _bits(value: float) -> float:
    return 120 + 22 * value


def _bar(y: float, name: str, width: float, figure: str, colour: str, *, verdict: str = "") -> list[str]:
    end = 120 + width
    badge = [
        f'<rect x="{end + 88:.1f}" y="{y + 1}" width="60" height="26" rx="4" fill="{colour}"/>',
        f'<g fill="#fff">{drawn_text(end + 118, y + 20, verdict, anchor="middle", weight="bold")}</g>',
    ]
    return [
        drawn_text(110, y + 20, name, anchor="end"),
        f'<rect x="120" y="{y}" width="{width:.1f}" height="28" fill="{colour}"/>',
        drawn_text(end + 10, y + 20, figure, anchor="start"),
        *(badge if verdict else []),
    ]


def rooms() -> str:
    """The rooms of the package from the top, which imports all below, to the bottom, by the contract of the linter."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(each["layers"] for each in contracts if each["type"] == "layers")
    body = [
        drawn_text(20, 26, "Imports run downwards only; rooms side by side do not import each other", anchor="start")
    ]
    for place, layer in enumerate(layers):
        names = [name.strip().removeprefix("atdp_cli.") for name in layer.split("|")]
        width = (560 - 12 * (len(names) - 1)) / len(names)
        for column, name in enumerate(names):
            x, y = 20 + column * (width + 12), 40 + 34 * place
            body.append(
                f'<rect x="{x:.0f}" y="{y}" width="{width:.0f}" height="28" rx="4" fill="{GROUND}" stroke="#888"/>'
            )
            body.append(drawn_text(x + width / 2, y + 19, name, anchor="middle"))
    said = " above ".join(layer.replace("atdp_cli.", "").replace(" | ", " and ") for layer in layers)
    return drawing("Rooms", said, "\n".join(body), width=600, height=52 + 34 * len(layers))


def memory_map() -> str:
    """What the map finds of a model's corpus before hardening, after it, and after hardening with the map."""
    models = {"`no-dp`": "fine-tuned", "hardened without the map": "hardened", "with the map": "hardened with the map"}
    found = {shown: number(measured("Memory map", name)[1]) for name, shown in models.items()}
    body = [drawn_text(16, 28, "Records that the memory map finds, of 2,000", anchor="start", weight="bold")]
    for row, (name, count) in enumerate(found.items()):
        y, width = 44 + 36 * row, 0.6 * count
        colour = BEFORE if count else AFTER
        body.append(drawn_text(205, y + 20, name, anchor="end"))
        body.append(f'<rect x="215" y="{y}" width="{max(width, 2):.1f}" height="28" fill="{colour}"/>')
        body.append(drawn_text(225 + width, y + 20, f"{count:.0f}", anchor="start"))
    source = "60 texts, most of them unflagged, planted in lines of ABCD; false discovery rate 5 %"
    body.append(f'<g font-size="12">{drawn_text(16, 172, source, anchor="start")}</g>')
    drawn = "\n".join(body)
    said = ", ".join(f"{name}: {count:.0f}" for name, count in found.items())
    return drawing("Memory map", said, f'<g font-size="16">\n{drawn}\n</g>', width=640, height=184)
