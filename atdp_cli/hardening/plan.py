"""The plan of a run, checked and accounted for before a model is loaded."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from atdp_cli.audit.manifest import Manifest, read_manifest
from atdp_cli.corpus.people import several_records
from atdp_cli.corpus.split import Split, load_split
from atdp_cli.detection.crosscheck.request import check_crosscheck
from atdp_cli.detection.detector import flags_of
from atdp_cli.errors import BudgetError, InputError, UsageError
from atdp_cli.files.corpus_file import STANDARD_INPUT
from atdp_cli.files.documents import file_sha256
from atdp_cli.hardening.corpus_key import corpus_commitment, corpus_key, history_of, reference_past
from atdp_cli.hardening.request import SettledRequest
from atdp_cli.model.folder import check_folder, is_adapter, weight_files
from atdp_cli.model.hashes import ledger_beside
from atdp_cli.model.same_weights import same_weights
from atdp_cli.privacy.guarantee import check_own_flags, check_seen, guarantees
from atdp_cli.privacy.ledger import CheckpointHistory, Ledger
from atdp_cli.privacy.relation import STABLE_TIERS, Flags, Relation
from atdp_cli.privacy.scope import Guarantee
from atdp_cli.training.plan import CorpusFacts, Plan, Reference, make_plan
from atdp_cli.training.recipe import (
    DPSGD,
    NonPrivate,
    Recipe,
    TextVariant,
    last_private,
    needs_whole_model,
    reads_records,
    reads_reference,
    tunable,
)
from atdp_cli.training.solve import solve_noise


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A checked request: its records, its plan, and the guarantees of the plan.

    Attributes:
        flags: What flags the records.
        inherited: The ledger beside the starting checkpoint.
        manifest: Of the planted canaries.
        people: A warning that one person has several records.
        corpus_key: Under which the ledger commits to the corpus; secret.
        sha256: Hashes a file, each once a run.
    """

    request: SettledRequest
    split: Split
    plan: Plan
    flags: Flags
    inherited: Ledger | None
    guarantees: tuple[Guarantee, ...]
    manifest: Manifest | None
    people: str | None
    corpus_key: bytes = field(repr=False)
    sha256: Callable[[Path], str]


def plan_request(request: SettledRequest) -> Planned:
    """Check everything that can be checked before a model is loaded, and account for the whole run.

    Raises:
        InputError: Model, corpus or ledger cannot be used.
        UsageError: Options contradict each other.
        BudgetError: ε cannot be reached, or passes `max_epsilon`.
    """
    _check(request)
    flags = flags_of(
        request.detector,
        spans=request.spans is not None,
        extra_spans=bool(request.extra_spans),
        review=request.review is not None,
    )
    check_folder(request.model)
    manifest = None if request.manifest is None else read_manifest(request.manifest)
    sha256 = cache(file_sha256)
    inherited = ledger_beside(request.model, sha256)
    split = load_split(
        request.data,
        unit=request.privacy_unit,
        text_field=request.text_field,
        turns=request.turns,
        source_field=request.source_field,
        max_records=request.max_records,
        valid=request.eval_data,
        holdout_by=request.holdout_by,
        skip_bad=request.skip_bad,
    )
    _check_conversations(request, split)
    own = len(split.records) if request.eval_data is None else split.training
    checkpoint_history = history_of(request.checkpoint_history, inherited, request.model, split)
    reference = _reference(request, split, sha256, checkpoint_history)
    key = corpus_key(request.output if request.resume else None, request.model, request.insecure_seed)
    corpus = CorpusFacts(
        records=split.training,
        relation=Relation(unit=request.privacy_unit, corpus=corpus_commitment(key, split), shape="none", flags=flags),
    )
    recipe, plan = _solved(
        request, corpus, checkpoint_history=checkpoint_history, inherited=inherited, reference=reference
    )
    supported = guarantees(plan.ledger)
    if request.target_asked:
        check_own_flags(plan.ledger, "--target-epsilon")
    if request.max_epsilon is not None:
        _check_budget(plan, supported, request.max_epsilon, accept_declared=request.accept_declared)
    return Planned(
        request=request.replace(recipe=recipe),
        split=split,
        plan=plan,
        flags=flags,
        inherited=inherited,
        guarantees=supported,
        manifest=manifest,
        people=several_records(request.data, split.records[:own], request.privacy_unit, request.text_field),
        corpus_key=key,
        sha256=sha256,
    )


def _solved(
    request: SettledRequest,
    corpus: CorpusFacts,
    *,
    checkpoint_history: CheckpointHistory,
    inherited: Ledger | None,
    reference: Reference | None,
) -> tuple[Recipe, Plan]:
    """The recipe, with the noise that meets the target if one is given, and its plan.

    Raises:
        BudgetError: ε cannot be reached.
    """

    def plan_with(recipe: Recipe) -> Plan:
        return make_plan(
            recipe,
            corpus,
            delta=request.delta,
            checkpoint_history=checkpoint_history,
            inherited=inherited,
            reference=reference,
            jitter_seed=request.jitter_seed,
            tune=request.tune,
            fixed_rate=request.fixed_rate,
            sharded=request.ranks.sharded,
        )

    recipe = request.recipe
    if request.target_epsilon is not None:
        recipe = solve_noise(recipe, request.target_epsilon, plan_with)
    plan = plan_with(recipe)
    if request.insecure_seed is not None:
        plan = replace(plan, ledger=plan.ledger.model_copy(update={"insecure_seed": True}))
    return recipe, plan


def _reference(
    request: SettledRequest, split: Split, sha256: Callable[[Path], str], checkpoint_history: CheckpointHistory
) -> Reference | None:
    """The reference with its ledger, after its folder was checked; None if nothing reads a reference."""
    if request.reference is None:
        return None
    if not any(reads_reference(stage) for stage in request.recipe):
        raise UsageError(f"No stage of recipe {request.recipe_name} reads a model.", "Leave --reference out.")
    check_folder(request.reference)
    weights = {file.name: sha256(file) for file in weight_files(request.reference)}
    ledger = ledger_beside(request.reference, sha256)
    past = reference_past(ledger, request.reference, split)
    # Who names the model itself does not declare that it never saw the corpus.
    if checkpoint_history == "unknown" and same_weights(request.model, request.reference):
        past = "unknown"
    return Reference(ledger=ledger, weights=weights, past=past)


def _check(request: SettledRequest) -> None:
    if STANDARD_INPUT in (*request.data, request.eval_data):
        raise UsageError("Standard input cannot be hardened on: it is read more than once.", "Give a file.")
    if request.extra_spans and len(request.data) != 1:
        raise UsageError("--extra-spans goes with one --data file.", "Harden on one corpus, or leave it out.")
    if request.spans is not None:
        _check_spans(request)
    _check_decoys(request)
    check_crosscheck(request.detector.crosscheck, spans=request.spans is not None)
    if request.target_epsilon is not None:
        _check_scaled(request.recipe)
    if request.merge_adapter and request.lora_rank is None and not is_adapter(request.model):
        raise UsageError("There is no adapter to merge.", "Use --set run.merge-adapter=true with --lora-rank.")
    _check_tune(request)
    _check_ranks(request)
    _check_paths(request)


def _check_conversations(request: SettledRequest, split: Split) -> None:
    for option, given in (("run.loss-on", request.loss_on), ("run.chat-template", request.chat_template)):
        if given is not None and not any(record.turns for record in split.records):
            raise UsageError(
                f"{option} is about conversations, and the field {request.text_field} holds none.",
                "Name the field of the messages with --text-field, or leave it out.",
            )


def _check_paths(request: SettledRequest) -> None:
    for path in request.data:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise InputError(f"{path} is no ordinary file.", "Give a file: it is read more than once.")
    named = (
        request.spans,
        *request.extra_spans,
        *request.detector.allow,
        *request.detector.deny,
        request.manifest,
        request.eval_data,
    )
    for path in filter(None, named):
        if not path.is_file():
            raise InputError(f"{path} is no file.", "Check the path.")


def _check_decoys(request: SettledRequest) -> None:
    tier = request.detector.tier
    if request.spans is not None or tier.value in STABLE_TIERS:
        return
    for stage in request.recipe:
        if stage.text is TextVariant.DECOY and reads_records(stage):
            raise UsageError(
                f"Stage {stage.name} reads decoys, which stand for entities; --tier {tier.value} flags more.",
                "Use --tier high-entity or low-entity.",
            )


def _check_tune(request: SettledRequest) -> None:
    if request.tune in (None, "none"):
        return
    if not tunable(request.recipe):
        raise UsageError(
            f"--tune needs a last stage on decoys and no DP stage; recipe {request.recipe_name} is another.",
            "Leave --tune out, or use --recipe fitted-decoys.",
        )
    if request.review is not None:
        raise UsageError(
            "--tune chooses settings before people review the spans.", "Leave out --tune or --review-each-epoch."
        )


def _check_ranks(request: SettledRequest) -> None:
    """Refuse options that only work in one process."""
    if request.ranks.size == 1:
        return
    if request.ranks.sharded and any(needs_whole_model(stage) for stage in request.recipe):
        raise UsageError(f"Recipe {request.recipe_name} goes with whole models only.", "Leave run.shard-model out.")
    if request.review is not None:
        raise UsageError("--review-each-epoch goes with one process.", "Review first, and give --allow and --deny.")
    if request.detector.crosscheck is not None:
        raise UsageError("The cross-check goes with one process.", "Detect first, and give --spans.")


def _check_spans(request: SettledRequest) -> None:
    if len(request.data) != 1:
        raise UsageError("--spans goes with one --data file.", "Harden on one corpus, or leave --spans out.")
    if request.eval_data is not None:
        raise UsageError("--spans covers --data only.", "Leave --eval-data out: part of --data is held out.")
    if request.review is not None:
        raise UsageError(
            "--spans takes the detector's place, so there is nothing to review.", "Leave --review-each-epoch out."
        )


def _check_scaled(recipe: Recipe) -> None:
    mechanism = recipe[last_private(recipe)].mechanism
    if (
        isinstance(mechanism, DPSGD)
        and mechanism.schedule.kind == "rise-reset"
        and mechanism.schedule.sigma_max is not None
    ):
        raise UsageError(
            "run.sigma-max and --target-epsilon contradict each other: the ceiling is scaled with the noise.",
            "Leave one of them out.",
        )


def _check_budget(plan: Plan, supported: Sequence[Guarantee], limit: float, *, accept_declared: bool) -> None:
    if not accept_declared:
        check_seen(plan.ledger)
    unbounded = [
        stage.stage.name
        for stage in plan.stages
        if reads_records(stage.stage) and isinstance(stage.stage.mechanism, NonPrivate)
    ]
    if unbounded:
        raise BudgetError(
            f"Stage {unbounded[0]} trains without noise, so no --max-epsilon holds.",
            "Leave --max-epsilon out, or choose a recipe of DP stages, as --recipe atdp.",
        )
    check_own_flags(plan.ledger, "--max-epsilon")
    epsilon = next(each.epsilon for each in supported if each.scope == "increment") or 0.0
    if epsilon > limit:
        raise BudgetError(
            f"The plan spends ε = {epsilon:.3g}, above --max-epsilon {limit:g}.",
            "Use --target-epsilon, more noise, fewer epochs or a smaller batch.",
        )
