"""The report as HTML: its numbers are the JSON's, and it needs nothing but itself."""

import math
import re
from dataclasses import dataclass, field
from functools import reduce
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.reporting.document import PrivateReport, PublicReport
from atdp_cli.reporting.html import FORMS, render_html, render_value
from atdp_cli.reporting.wording import MAY
from tests.reporting.documents import RAW, RELEASE, audit, private, public

NUMBER = re.compile(r"\d+(?:[.,]\d+)*(?:e[+-]?\d+)?")
VOID = {"meta", "br", "link", "img", "rect", "line", "circle", "polyline"}


@dataclass
class Page(HTMLParser):
    """What stands on a page: its numbers with their paths, its other text, its tags, and whether those are closed."""

    numbers: list[tuple[str, str, str]] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "data":
            reported = dict(attrs)
            self.numbers.append((reported["data-path"] or "", reported["value"] or "", ""))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "data" in self.open:
            path, value, before = self.numbers[-1]
            self.numbers[-1] = (path, value, before + data)
        elif "style" not in self.open and "svg" not in self.open:
            self.text.append(data)


def page_of(html: str) -> Page:
    page = Page()
    page.feed(html)
    page.close()
    assert not page.open
    return page


def at(document: Any, path: str) -> Any:
    return reduce(lambda actual, key: actual[int(key) if isinstance(actual, list) else key], path.split("."), document)


def strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [*map(str, value), *(text for child in value.values() for text in strings(child))]
    if isinstance(value, list):
        return [text for child in value for text in strings(child)]
    return [value] if isinstance(value, str) else []


def leaves(value: Any, path: str = "") -> dict[str, float]:
    """Every number of a document by its path."""
    if isinstance(value, dict):
        return {
            k: v for key, child in value.items() for k, v in leaves(child, f"{path}.{key}" if path else key).items()
        }
    if isinstance(value, list):
        return {k: v for key, child in enumerate(value) for k, v in leaves(child, f"{path}.{key}").items()}
    return {path: value} if isinstance(value, int | float) and not isinstance(value, bool) else {}


REPORTS = [public(), private(), public(RAW, RELEASE, audits=(), epsilon_over_steps=(), sentence=(), stages=())]


@pytest.mark.parametrize("report", REPORTS)
def test_every_number_is_that_of_the_json(report: PublicReport | PrivateReport) -> None:
    document = report.model_dump(mode="json")
    page = page_of(render_html(report))
    assert page.numbers
    for path, value, reported in page.numbers:
        meant = at(document, path)
        if meant is None or meant == "inf":
            assert reported == ("–" if meant is None else "∞"), path
            continue
        assert value == str(meant)
        assert close(reported, float(meant)), (path, reported, meant)
        if path.rpartition(".")[2] in ("epsilon", "pld", "rdp", "paper", "without_amplification", "claim"):
            assert "bounds" in path or float(reported) >= meant, "an ε is never rounded down"


def close(reported: str, meant: float) -> bool:
    """Whether a shown number is within what its last digit leaves open."""
    plain = reported.replace(",", "").rstrip("%")
    digits = len(plain.partition("e")[0].partition(".")[2]) - int(plain.partition("e")[2] or 0)
    scale = 100 if reported.endswith("%") else 1
    return abs(float(plain) - meant * scale) <= max(10.0**-digits, abs(meant) * 1e-3)


@pytest.mark.parametrize("report", REPORTS)
def test_no_other_number_stands_there(report: PublicReport | PrivateReport) -> None:
    """Outside of <data>, numbers are parts of the JSON's sentences or of fixed words."""
    document = report.model_dump(mode="json")
    guarantees = (document.get("public") or document)["guarantees"]
    known = {number for text in strings(document) for number in NUMBER.findall(text)}
    known |= {render_value(guarantee["epsilon"], "epsilon") for guarantee in guarantees}
    fixed = {"800", "226", "256", "2", "1", "95", "100"}
    rows = {str(row) for row in range(1, 100)}
    for text in page_of(render_html(report)).text:
        assert set(NUMBER.findall(text)) <= known | fixed | rows, text


@pytest.mark.parametrize("report", [public(), private()])
def test_what_was_measured_is_all_there(report: PublicReport | PrivateReport) -> None:
    document = report.model_dump(mode="json")
    paths = {path for path, _, _ in page_of(render_html(report)).numbers}
    wanted = (
        r"guarantees\.\d+\.epsilon|epsilon\.|epsilon_over_steps|sentence|noise_multipliers|canaries\.\d+\.expo"
        r"|mean_interval|mean_ratio_interval|perplexit|mean_norms|seconds|tokens|not_finite|clamped|sensitive_|passes"
        r"|relearning\.mean|extraction|membership|bounds\.\d+\.epsilon|hardware"
    )
    missing = {path for path in leaves(document) if re.search(wanted, path)} - paths
    assert not missing


def test_the_public_page_holds_nothing_private() -> None:
    whole = private()
    html = render_html(whole.public)
    for text in ("secret-model", "98.7", "45.67", "4,321", "34,567"):
        assert text not in html
        assert text in render_html(whole)


@pytest.mark.parametrize("html", [render_html(public()), render_html(private())])
def test_it_asks_no_host_and_runs_nothing(html: str) -> None:
    page = page_of(html)
    for tag, attributes in page.tags:
        assert tag not in ("script", "link", "img", "iframe", "object", "embed", "form")
        assert not {"src", "href", "action"} & set(attributes)
        assert not any(name.startswith("on") for name in attributes)
    assert "@import" not in html
    assert "url(" not in html
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_the_face_comes_first_then_the_audit_the_guarantees_and_the_annexes() -> None:
    report = public(name="Helper 3")
    assert report.release is not None
    text = " ".join(" ".join(page_of(render_html(report)).text).split())
    parts = (
        "Helper 3 Date",
        report.created[:10],
        report.recipe,
        f"atdp {report.software['atdp']}",
        report.weights["model.safetensors"],
        "Releasable for flagged values only",
        report.release.reason,
        MAY["flagged-values-only"],
        "Audit: PASS",
        report.summary.audit,
        "What is protected",
        "What it costs",
        report.summary.protects,
        report.summary.leaves_open,
        "Guarantees,",
        "Annex A:",
        "What ε does not cover",
        "privacy loss distributions",
        "questions of NIST SP 800-226",
    )
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


@pytest.mark.parametrize("report", REPORTS)
def test_tables_of_accountants_noise_and_the_sentence_are_folded(report: PublicReport | PrivateReport) -> None:
    html = render_html(report)
    front, annexes = html.split('<div class="annexes">')
    assert "<details" not in front
    assert not re.search(r"<h2>(?!Annex)", annexes)
    for caption in ("by each accountant", "Every σ", "token's probability", "Each canary"):
        assert caption not in front
    assert "::details-content" in html.partition("@media print")[2]


def test_without_an_audit_it_says_so_and_draws_none() -> None:
    html = render_html(public(audits=()))
    assert "Audit: not audited" in html
    assert "Mean exposure" not in html
    assert "not tested" in html


def test_a_model_audited_alone_has_no_mark_of_its_start() -> None:
    both, alone = render_html(public()), render_html(public(audits=(audit("after"),)))
    assert ">its start</text>" in both
    assert ">its start</text>" not in alone
    assert ">this model</text>" in alone


def test_a_report_of_an_earlier_version_has_no_verdict_and_no_annex_of_questions() -> None:
    earlier = public().model_copy(update={"release": None, "annex": ()})
    html = render_html(earlier)
    assert "badge" not in html.split("</style>")[1]
    assert "800-226" not in html


def test_what_comes_from_a_report_is_text_and_not_html() -> None:
    hostile = "<script>alert(1)</script>"
    report = public(recipe=hostile, engine=hostile, command=(hostile,), audits=(audit(reasons=(hostile,)),))
    assert "<script" not in render_html(report)


def test_headings_go_down_one_level_at_a_time() -> None:
    levels = [int(tag[1]) for tag, _ in page_of(render_html(private())).tags if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


@given(st.floats(min_value=1e-9, max_value=1e12), st.sampled_from(sorted(FORMS)))
def test_forms_keep_the_number(value: float, form: str) -> None:
    reported = render_value(value, form)
    if form == "epsilon":
        assert float(reported) >= value
    coarse = {"count": 0.5, "fixed": 0.005, "share": 0.0005}.get(form, 0.0)
    meant = float(reported.replace(",", "").rstrip("%")) / (100 if form == "share" else 1)
    assert math.isclose(meant, value, rel_tol=0.011, abs_tol=coarse * 1.001)
