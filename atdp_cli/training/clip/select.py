"""The choice of a run's engine, with fallbacks for unsupported models and too little memory."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, Protocol

import torch
from transformers import PreTrainedModel

from atdp_cli.errors import InputError, RunError
from atdp_cli.events import ChoiceWarning, Notify, ignore
from atdp_cli.training.clip import ghost, opacus, per_record
from atdp_cli.training.clip.batches import private_tokens
from atdp_cli.training.clip.engine import SAME_BITS, ClippedSum, ClippingEngine
from atdp_cli.training.clip.layer_rules import UnknownLayerError
from atdp_cli.training.clip.self_check import STATED_EFFECT, batch_effect, same_gradients, stated_effect, without_zeros
from atdp_cli.training.examples import Example, count_tokens
from atdp_cli.training.options import ENGINES, ClippingEngineName, Precision
from atdp_cli.training.parallel.collectives import all_gather
from atdp_cli.training.parallel.ranks import SINGLE_PROCESS, Ranks
from atdp_cli.training.precision import computing_in, in_precision

PROBE_TOKENS = 80


class _Batched(Protocol):
    def __call__(
        self, model: PreTrainedModel, records: Sequence[Example], clip_norm: float, *, tokens: int, positions: bool
    ) -> ClippedSum: ...


_BATCHED: dict[ClippingEngineName, _Batched] = {"ghost": ghost.clipped_sum, "opacus": opacus.clipped_sum}


@dataclass(frozen=True, kw_only=True)
class SelectedEngine:
    """An engine that agreed with `per-record` on random tokens.

    Attributes:
        name: The engine.
        run: The engine itself.
        refused: For each engine that was tried before it, why it could not be used.
        precision: What layers compute in while it runs.
    """

    name: ClippingEngineName
    run: ClippingEngine
    refused: tuple[str, ...] = ()
    precision: Precision = "float32"


def select_engine(
    model: PreTrainedModel,
    wanted: ClippingEngineName | Literal["auto"],
    notify: Notify,
    *,
    tokens: int | None = None,
    ranks: Ranks = SINGLE_PROCESS,
    precision: Precision = "float32",
) -> SelectedEngine:
    """The engine that the user chose, or for `auto` the first that is right for this model.

    Each is run on random tokens and compared with `per-record`; the outcome depends on no record. Where a record's
    gradient differs beside others by more than `STATED_EFFECT` allows, each record is computed in a batch of its own,
    or, where that does not give the same bits twice either, the noise allows for more.

    Args:
        model: In eval mode.
        wanted: An engine, or `auto`.
        notify: Receives an event for a fallback, and for batches that had to shrink.
        tokens: The most tokens of a physical batch; None to choose by the size of the vocabulary.
        ranks: For sharded parameters only `ghost` works, and batches do not shrink: the processes run theirs at
            the same time.
        precision: What layers are to compute in; engines are compared in fp64 first.

    Raises:
        InputError: The chosen engine does not fit the model, or none does that can shard parameters; or a record's
            gradient is so different twice that no noise can allow for it.
    """
    tokens = tokens or private_tokens(model)
    if ranks.sharded:
        return _sharded(model, wanted, tokens, notify, ranks=ranks, precision=precision)
    refused: list[str] = []
    for name in ENGINES if wanted == "auto" else (wanted,):
        effect = 0.0
        if name == "per-record":
            run: ClippingEngine = per_record.clipped_sum
        else:
            fitting = _fitting(model, name, _BATCHED[name], precision)
            if isinstance(fitting, str):
                refused.append(f"{name}: {fitting}")
                continue
            tokens, effect = _independent(model, fitting, tokens, notify, ranks=ranks, precision=precision)
            run = _stating(shrink_on_out_of_memory(fitting, tokens, notify), effect)
        if refused:
            notify(ChoiceWarning(what="engine", reason=f"{name}; refused were {'; '.join(refused)}"))
        return SelectedEngine(name=name, run=in_precision(precision, run), refused=tuple(refused), precision=precision)
    reason = refused[0].removeprefix(f"{wanted}: ")
    raise InputError(f"Engine {wanted} does not fit this model: {reason}.", "Use --set run.clipping=auto.")


def _sharded(
    model: PreTrainedModel,
    wanted: ClippingEngineName | Literal["auto"],
    tokens: int,
    notify: Notify,
    *,
    ranks: Ranks,
    precision: Precision,
) -> SelectedEngine:
    if wanted not in ("auto", "ghost"):
        raise InputError(
            f"Engine {wanted} needs every parameter whole.", "Use --set run.clipping=auto, or no run.shard-model."
        )
    fitting = _fitting(model, "ghost", partial(ghost.clipped_sum, ranks=ranks), precision)
    if isinstance(fitting, str):
        raise InputError(
            f"This model cannot be sharded: ghost does not fit it, {fitting}.", "Leave run.shard-model out."
        )
    tokens, effect = _independent(model, fitting, tokens, notify, ranks=ranks, precision=precision)
    run = _stating(partial(fitting, tokens=tokens), effect)
    return SelectedEngine(name="ghost", run=in_precision(precision, run), precision=precision)


def _stating(engine: ClippingEngine, effect: float) -> ClippingEngine:
    def run(model: PreTrainedModel, records: Sequence[Example], clip_norm: float) -> ClippedSum:
        clipped = engine(model, records, clip_norm)
        return replace(clipped, batch_effect=clipped.batch_effect + effect)

    return run


def _independent(
    model: PreTrainedModel,
    sized: "BatchedEngine",
    tokens: int,
    notify: Notify,
    *,
    ranks: Ranks,
    precision: Precision,
) -> tuple[int, float]:
    """The tokens of a batch with which records hardly depend on one another, and the η to state.

    All processes come to the same result.
    """

    def measured(tokens: int) -> float:
        engine = shrink_on_out_of_memory(sized, tokens, ignore)
        with computing_in(model, precision), without_zeros(model):
            own = batch_effect(model, engine)
        return float(all_gather(ranks, torch.tensor([own], dtype=torch.float64), ranks.size).max())

    effect = measured(tokens)
    if effect <= SAME_BITS:
        return tokens, 0.0
    stated = stated_effect(effect) if precision == "float32" else None
    if stated == STATED_EFFECT:
        return tokens, stated
    if measured(1) <= SAME_BITS:
        reason = "this device rounds otherwise in larger batches; one record at a time"
        notify(ChoiceWarning(what="max-batch-tokens", reason=reason))
        return 1, 0.0
    if stated is None:
        raise InputError(
            f"On this device a record's gradient in {precision} is not the same twice, so the noise that it needs is "
            "not known.",
            "Use another device" + (", or leave run.compute-dtype out." if precision == "bfloat16" else "."),
        )
    reason = f"larger by {stated:.2%} for each record of a step, since this device does not round alike twice"
    notify(ChoiceWarning(what="noise", reason=reason))
    return tokens, stated


class BatchedEngine(Protocol):
    """An engine for physical batches of at most so many tokens."""

    def __call__(
        self, model: PreTrainedModel, records: Sequence[Example], clip_norm: float, *, tokens: int
    ) -> ClippedSum: ...


def _fitting(
    model: PreTrainedModel, name: ClippingEngineName, engine: _Batched, precision: Precision
) -> BatchedEngine | str:
    """The engine with position ids, or without, whichever is right; otherwise why neither is."""
    reason = ""
    for positions in (False, True):
        sized = partial(engine, positions=positions)
        try:
            right = same_gradients(model, name, shrink_on_out_of_memory(sized, PROBE_TOKENS, ignore), precision)
        except UnknownLayerError as error:
            reason = reason or str(error)
        except Exception as error:  # an unfamiliar architecture can stumble over anything
            reason = reason or f"it failed ({type(error).__name__})"
        else:
            if right:
                return sized
            reason = reason or "its gradients are not those of single records"
    return reason


def shrink_on_out_of_memory(engine: BatchedEngine, tokens: int, notify: Notify) -> ClippingEngine:
    """The engine with physical batches that shrink when memory runs out.

    The step's sum starts again from zero with the same sample, so no record is lost or counted twice.
    """
    limit = tokens

    def run(model: PreTrainedModel, records: Sequence[Example], clip_norm: float) -> ClippedSum:
        nonlocal limit
        while True:
            try:
                return engine(model, records, clip_norm, tokens=limit)
            except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
                if not out_of_memory(error):
                    raise
                if limit <= 1:
                    raise RunError(
                        "Memory does not hold the gradient of a single record.",
                        "Use a shorter --privacy-unit, a smaller run.max-windows or a smaller model.",
                    ) from error
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            limit = max(1, min(limit, count_tokens(records)) // 2)
            notify(
                ChoiceWarning(what="max-batch-tokens", reason=f"out of memory; {limit} tokens at a time from now on")
            )

    return run


def out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, on whatever device: not every such error has a type of its own."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and ("out of memory" in str(error) or "can't allocate" in str(error))
