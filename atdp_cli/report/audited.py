"""What an audit's JSON entry says of each canary and of the model: the parts that every CI output reports."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from json import JSONDecoder
from typing import Any

Entry = Mapping[str, Any]
"""One entry of the `models` list of `audit-canary --json`."""


class Outcome(StrEnum):
    """What became of one part. KNOWN: it fails, and is no worse than the baseline says."""

    PASS = "PASS"  # noqa: S105 - an outcome, not a password
    FAIL = "FAIL"
    KNOWN = "KNOWN"
    INCONCLUSIVE = "INCONCLUSIVE"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One canary of a model, or all of them together.

    Attributes:
        number: Of the canary, from 1 in the manifest's order; None for the verdict on the model.
        says: What is to be said of it, in sentences. Holds no secret.
    """

    model: str
    number: int | None
    outcome: Outcome
    says: str

    @property
    def name(self) -> str:
        """`canary 3`, or `verdict`."""
        return "verdict" if self.number is None else f"canary {self.number}"


def checks_of(entry: Entry) -> tuple[Check, ...]:
    """Every canary of a model, then its verdict."""
    known = set((entry["baseline"] or {}).get("known", ()))
    canaries = tuple(
        Check(
            model=entry["model"],
            number=number,
            outcome=_outcome(entry, canary, known=number in known),
            says=_standing(canary),
        )
        for number, canary in enumerate(entry["canaries"], start=1)
    )
    outcome = Outcome(entry["verdict"])
    if outcome is Outcome.FAIL and entry["gate"] == "PASS":
        outcome = Outcome.KNOWN
    return (*canaries, Check(model=entry["model"], number=None, outcome=outcome, says=" ".join(entry["reasons"])))


def failing(entry: Entry, canary: Mapping[str, Any]) -> bool:
    """Whether this canary by itself fails its model: by Holm's test or by the user's limit, by either score.

    None does where the verdict is not FAIL, for then its rank is not to be relied on, and none that is not planted.
    """
    if entry["verdict"] != "FAIL" or not canary["planted"]:
        return False
    level, limit = entry["combined"]["level"], entry["max_exposure"]
    if any(p is not None and p <= level for p in (canary["holm_p"], canary["holm_p_ratio"])):
        return True
    exposures = (canary["exposure"], canary["exposure_ratio"])
    return limit is not None and any(bits is not None and bits > limit for bits in exposures)


def failing_bound(entry: Entry) -> float | None:
    """The largest lower bound on ε that fails the model: above the user's limit, or above the ledger's claim."""
    limit = entry["max_epsilon_lower_bound"]
    found = [
        one["epsilon"]
        for one in entry["epsilon"]
        if one["finding"] == "refuted" or (limit is not None and one["epsilon"] > limit)
    ]
    return max(found, default=None) if entry["verdict"] == "FAIL" else None


def failing_number(entry: Entry) -> float | None:
    """The highest exposure of a number of the corpus that passes the user's limit, bits."""
    limit, own = entry["max_exposure"], entry["own_secrets"]
    if limit is None or own is None or entry["verdict"] != "FAIL":
        return None
    judged = (one["exposure"] if one["exposure_ratio"] is None else one["exposure_ratio"] for one in own["results"])
    return max((bits for bits in judged if bits > limit), default=None)


def canary_lines(manifest: str) -> tuple[int, ...]:
    """The line, from 1, on which each canary's entry begins in the text of a manifest that has been read already."""
    decoder = JSONDecoder()

    def skip(place: int, also: str = "") -> int:
        while manifest[place] in " \t\r\n" + also:
            place += 1
        return place

    place = skip(0, "{\ufeff")
    while manifest[place] != "}":
        key, place = decoder.raw_decode(manifest, place)
        place = skip(place, ":")
        if key != "canaries":
            place = skip(decoder.raw_decode(manifest, place)[1], ",")
            continue
        lines = []
        place = skip(place + 1)
        while manifest[place] != "]":
            lines.append(manifest.count("\n", 0, place) + 1)
            place = skip(decoder.raw_decode(manifest, place)[1], ",")
        return tuple(lines)
    return ()


def check_json(value: Any) -> str:
    """A document as the tool writes it to files."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _outcome(entry: Entry, canary: Mapping[str, Any], *, known: bool) -> Outcome:
    if entry["verdict"] == "INCONCLUSIVE":
        return Outcome.INCONCLUSIVE
    if not failing(entry, canary):
        return Outcome.PASS
    return Outcome.KNOWN if known else Outcome.FAIL


def _standing(canary: Mapping[str, Any]) -> str:
    said = "" if canary["planted"] else "Not planted, so it counts for nothing. "
    said += (
        f"Rank {canary['stratum_rank_max']:,} of {canary['stratum_size']:,}, "
        f"exposure {canary['exposure']:.2f} bits{_p(canary['holm_p'])}."
    )
    if canary["exposure_ratio"] is not None:
        bits = f"{canary['exposure_ratio']:.2f} bits{_p(canary['holm_p_ratio'])}"
        said += f" By the ratio to the reference: exposure {bits}."
    return said


def _p(value: float | None) -> str:
    return "" if value is None else f", adjusted p = {value:.2g}"
