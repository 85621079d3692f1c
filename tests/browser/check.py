"""What `make check-html` runs: reports in headless Chromium, at three widths, in both schemes and on paper.

Each is looked at with its annexes folded and open. It fails where a page is wider than its window or its paper, asks
for anything but itself, complains in the console, breaks a rule of axe-core in a serious way, or where paper does not
show what the screen folds, on a third page or later. With --screenshots it keeps the first screen of the first report.
"""

import argparse
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

WIDTHS = {390: 844, 1280: 800, 1920: 1080}
"""Windows as wide as a phone, a laptop and a desk's screen, with their heights, pixels."""

PAPER, PAGE = 680, 1009
"""A4 between margins of 15 mm, width and height, pixels of 1/96 inch."""

SERIOUS = ("serious", "critical")
Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", type=Path, nargs="+", metavar="HTML")
    parser.add_argument("--screenshots", type=Path, help="folder for pictures of the first report")
    arguments = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        print("check.py: Chromium is not installed; on Debian: apt install chromium", file=sys.stderr)
        return 3
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        problems = [problem for report in arguments.reports for problem in look(browser, report.resolve())]
        if arguments.screenshots is not None:
            picture(browser, arguments.reports[0].resolve(), arguments.screenshots)
        browser.close()
    for problem in problems:
        print(problem)
    print(
        f"{len(arguments.reports)} pages, {len(WIDTHS)} widths, {len(SCHEMES)} schemes, paper: {len(problems)} problems"
    )
    return 1 if problems else 0


def look(browser: Browser, report: Path) -> Iterator[str]:
    """Everything that is wrong with a page."""
    for width, height in WIDTHS.items():
        for scheme in SCHEMES:
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            heard: list[str] = []
            page.on("console", lambda message, heard=heard: heard.append(f"console: {message.text}"))
            page.on("pageerror", lambda error, heard=heard: heard.append(f"error: {error}"))
            page.on("request", lambda request, heard=heard: heard.append(f"request: {request.url}"))
            page.goto(report.as_uri())
            where = f"{report.name} at {width}, {scheme}"
            yield from (f"{where}: {line}" for line in heard if line != f"request: {report.as_uri()}")
            yield from (f"{where}: {problem}" for problem in (*too_wide(page, width), *inaccessible(page)))
            page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
            yield from (f"{where}, unfolded: {problem}" for problem in (*too_wide(page, width), *inaccessible(page)))
            page.close()
    page = browser.new_page(viewport={"width": PAPER, "height": 1000})
    page.goto(report.as_uri())
    page.emulate_media(media="print")
    yield from (f"{report.name} on paper: {problem}" for problem in (*too_wide(page, PAPER), *missing_on_paper(page)))
    if not page.pdf(format="A4", prefer_css_page_size=True).startswith(b"%PDF"):
        yield f"{report.name}: no PDF"
    page.close()


def missing_on_paper(page: Page) -> Iterator[str]:
    """Annexes that are folded on paper too, and a front that takes more than two pages."""
    yield from page.evaluate(
        """() => [...document.querySelectorAll('details')]
            .filter(one => [...one.children].slice(1).some(part => !part.checkVisibility()))
            .map(one => 'folded: ' + one.querySelector('summary').textContent)"""
    )
    annexes = page.evaluate("document.querySelector('.annexes')?.getBoundingClientRect().top ?? 0")
    if annexes > 2 * PAGE:
        yield f"the annexes begin {annexes:.0f} pixels down, after more than two pages"


def too_wide(page: Page, width: int) -> Iterator[str]:
    """The page where it scrolls sideways, and what reaches out of it but in a box that scrolls by itself."""
    if (actual := page.evaluate("document.documentElement.scrollWidth")) > width:
        yield f"{actual} pixels wide"
    cut = page.evaluate(
        """width => [...document.querySelectorAll('body *')]
            .filter(one => !one.closest('svg') && !one.matches('.hidden') && !one.parentElement.closest('.wide'))
            .filter(one => one.getBoundingClientRect().right > width + 1)
            .map(one => one.tagName + ' ' + one.textContent.trim().slice(0, 40)).slice(0, 5)""",
        width,
    )
    yield from (f"reaches out: {tag}" for tag in cut)


def inaccessible(page: Page) -> Iterator[str]:
    """Serious findings of axe-core."""
    for violation in Axe().run(page).response["violations"]:
        if violation["impact"] in SERIOUS:
            nodes = violation["nodes"]
            yield f"axe: {violation['id']}: {violation['help']} ({len(nodes)}, as {nodes[0]['html'][:80]})"


def picture(browser: Browser, report: Path, folder: Path) -> None:
    """The first screen as seen on a laptop, light and dark, and on a phone."""
    for name, width, scheme in (
        ("report", 1280, "light"),
        ("report-dark", 1280, "dark"),
        ("report-phone", 390, "light"),
    ):
        shown: Scheme = "dark" if scheme == "dark" else "light"
        page = browser.new_page(viewport={"width": width, "height": WIDTHS[width]}, color_scheme=shown)
        page.goto(report.as_uri())
        page.screenshot(path=folder / f"{name}.png")
        page.close()


if __name__ == "__main__":
    sys.exit(main())
