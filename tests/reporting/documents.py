"""Reports with figures of one's choice, for what renders them."""

import math
from typing import Any

from atdp_cli.audit.results import Verdict
from atdp_cli.memorisation.results import ComparedRanks
from atdp_cli.privacy.accountant import EpsilonPoint, Epsilons
from atdp_cli.privacy.guarantee import guarantees
from atdp_cli.privacy.ledger import Ledger, LedgerEvent
from atdp_cli.privacy.wording import guarantee_sentences
from atdp_cli.reporting.annex import with_public, with_verdict
from atdp_cli.reporting.audit_entry import (
    AuditedCanary,
    AuditEntry,
    Bound,
    ExtractionEntry,
    MembershipEntry,
    RelearningEntry,
    ScoreName,
)
from atdp_cli.reporting.document import (
    DetectorEntry,
    HardwareEntry,
    PrivateReport,
    PublicReport,
    SamplingEntry,
    StageEntry,
    StagePrivate,
    TokenEntry,
)
from atdp_cli.reporting.entries import (
    BeforeAfter,
    MemoryEntry,
    PerplexityEntry,
    RanksBeforeAfter,
    UsefulnessEntry,
    guarantee_entries,
)
from atdp_cli.reporting.wording import audit_sentence, lay_summary
from tests.privacy.relations import noisy, plain, votes

NOISY = noisy(2.0, 20)
RELEASE = votes()
REDACTED = plain("bytes", stage="redacted")
RAW = plain("none", stage="no-dp")


def ledger(*events: LedgerEvent, **fields: Any) -> Ledger:
    """A ledger over a thousand lines that begins at a public checkpoint."""
    return Ledger.model_validate(
        {"unit": "line", "checkpoint_history": "public", "records": 1000, "delta": 1e-6, "grid": 1e-3, "events": events}
        | fields
    )


def audit(of: ScoreName = "after", **fields: Any) -> AuditEntry:
    """Three canaries, one of them not planted."""
    canaries = tuple(
        AuditedCanary(planted=place != 2, repeats=7, exposure=1.3 + place, exposure_ratio=2.7, p=0.51, p_ratio=0.83)
        for place in range(3)
    )
    return AuditEntry.model_validate(
        {
            "of": of,
            "weights": {"model.safetensors": "ab12"},
            "verdict": "PASS",
            "reasons": ("The canaries rank where chance would put them.",),
            "gates": ("ranks",),
            "alpha": 0.01,
            "threshold": 9.65,
            "null_band": (0.0365, 5.3219),
            "canaries": canaries,
            "mean": 1.81,
            "mean_interval": (0.9, 2.4),
            "mean_ratio": 1.62,
            "mean_ratio_interval": (0.8, 2.2),
            "p": 0.44,
            "p_ratio": 0.39,
            "extraction": ExtractionEntry(greedy=1, discoverable=2, samples=1000, fewest=1234.5),
            "membership": (MembershipEntry(attack="loss", auc=0.54, auc_interval=(0.41, 0.67)),),
            "relearning": RelearningEntry(steps=50, verdict=Verdict.PASS, mean=1.71, mean_ratio=1.42),
            "bounds": (
                Bound(
                    method="rank",
                    epsilon=0.25,
                    delta=1e-6,
                    confidence=0.99,
                    claim=4.4,
                    finding="not-refuted",
                ),
            ),
        }
        | fields
    )


def memory(of: ScoreName, **fields: Any) -> MemoryEntry:
    """What a map found."""
    return MemoryEntry.model_validate(
        {
            "of": of,
            "weights": {"model.safetensors": "ab12"},
            "verdict": "FAIL",
            "sentences": ("Memorised: 41 of 1,957 against 1,003 held out.",),
            "tested": 1957,
            "held_out": 1003,
            "calibrated": True,
            "memorised": 41,
            "texts": 38,
            "greedy": 6,
            "labels": (("MEMORISED", 29), ("PERSON v1.5", 13)),
        }
        | fields
    )


def public(*events: LedgerEvent, **fields: Any) -> PublicReport:
    """A report whose sentences and guarantees are those of a ledger of these events."""
    actual = ledger(*(events or (REDACTED, NOISY)))
    reported = guarantees(actual)
    audits = fields.pop(
        "audits", (audit("after"), audit("before", verdict="FAIL", mean=11.9, mean_interval=(9.8, 14.1)))
    )
    report = PublicReport.model_validate(
        {
            "summary": lay_summary(actual, reported).model_copy(update={"audit": audit_sentence(audits)}),
            "verdict": guarantee_sentences(actual, reported),
            "guarantees": guarantee_entries(reported),
            "epsilon": Epsilons(pld=2.001, rdp=2.4567, paper=3.1, without_amplification=math.inf),
            "person": ({"records": 1, "epsilon": 2.001}, {"records": 10, "epsilon": 29.4}),
            "delta": actual.delta,
            "unit": actual.unit,
            "records": actual.records,
            "held_out": 50,
            "checkpoint_history": actual.checkpoint_history,
            "inherited_ledger": False,
            "recipe": "redacted+atdp",
            "stages": (
                StageEntry(name="redacted", text="redacted", objective="uniform", mechanism="plain"),
                StageEntry(
                    name="atdp",
                    text="raw",
                    objective="weighted, w = 0.2",
                    mechanism="dp-sgd",
                    epochs=3,
                    steps=30,
                    batch=100,
                    sampling_rate=0.1,
                    clip_norm=0.1,
                    noise_multipliers=(1.0, 1.5, 1.0),
                    optimizer="AdamW, learning rate 0.0005, weight decay 0.01",
                ),
            ),
            "detector": DetectorEntry(tier="low-entity", pipeline="en_core_web_sm 3.8.0", lists=False),
            "engine": "ghost",
            "engine_check": "agreed with clipping one record at a time, on random tokens, before the first step",
            "sampling": SamplingEntry(assumed="Poisson.", run="Poisson too."),
            "noise_source": "AES-256-CTR keyed by the operating system",
            "insecure_seed": False,
            "epsilon_over_steps": tuple(
                EpsilonPoint(step=step, pld=step / 17, rdp=step / 13, paper=step / 11) for step in (10, 20, 30)
            ),
            "sentence": (
                TokenEntry(text="My", sensitive=False, before=None, after=None),
                TokenEntry(text=" Emma", sensitive=True, before=13.37, after=15.91),
                TokenEntry(text="<b>", sensitive=False, before=0.01, after=math.inf),
            ),
            "audits": audits,
            "passes": 6.04,
            "start": {"model.safetensors": "cd34"},
            "weights": {"model.safetensors": "ab12"},
            "software": {"python": "3.11.7", "atdp": "0.1.0"},
            "command": ("atdp", "harden", "MODEL", "--epochs", "3"),
            "created": "2026-11-22T00:00:00+00:00",
        }
        | fields
    )
    return with_verdict(report)


def private(**fields: Any) -> PrivateReport:
    """The whole report, with figures of private text."""
    perplexity = PerplexityEntry(all=12.34, sensitive=45.67, other=8.91)
    ranks = ComparedRanks(training=0.312, held_out=0.465, training_values=100, held_out_values=50, p_value=0.0021)
    stages = (
        StagePrivate(
            name="redacted",
            perplexities=(perplexity, perplexity.model_copy(update={"sensitive": math.inf})),
            mean_norms=(),
            not_finite=0,
            seconds=12.3,
            processor_seconds=23.4,
            tokens=34567,
            clamped=None,
            sensitive_weight=None,
        ),
        StagePrivate(
            name="atdp",
            perplexities=(perplexity,),
            mean_norms=(1.25, None, 2.5),
            not_finite=4,
            seconds=56.7,
            processor_seconds=67.8,
            tokens=78901,
            clamped=0.125,
            sensitive_weight=0.61,
        ),
    )
    report = PrivateReport.model_validate(
        {
            "public": public(),
            "seconds": 98.7,
            "perplexity": BeforeAfter(before=perplexity, after=perplexity),
            "usefulness": tuple(
                UsefulnessEntry(
                    of=of, values=116, whole=whole, tokens=345, right=340, perplexity=perplexity, raw=perplexity
                )
                for of, whole in (("after", 113), ("before", 3), ("given", 107))
            ),
            "value_ranks": RanksBeforeAfter(before=ranks, after=ranks),
            "sensitive_share": 0.234,
            "stages": stages,
            "planted_canaries": (7, 7, 0),
            "flagged_spans": 4321,
            "flagged_share": 0.0567,
            "unread_records": 3,
            "listed_terms": 17,
            "hardware": HardwareEntry(processor="A processor", cores=2, memory=23.5, accelerator=None),
            "maps": (memory("after"), memory("before", calibrated=False, verdict="INCONCLUSIVE")),
            "command": ("atdp", "harden", "secret-model"),
        }
        | fields
    )
    return with_public(report, report.public)
