"""A run whose mechanism does not do what the journal says ends with an error that names it, and publishes nothing.

Each mutation is one that left every figure, report and exit code as it was before runs traced what they used. The
first three are those that an outside reading of the tool found to survive.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from atdp_cli.errors import ConformanceError
from atdp_cli.hardening import releases as frequencies
from atdp_cli.privacy import noisy_statistic
from atdp_cli.privacy.discrete_gaussian import discrete_gaussian
from atdp_cli.privacy.journal import journal_lines
from atdp_cli.privacy.rng import KeyStream, insecure_stream
from atdp_cli.privacy.trace import Noised, Observe, Sampled, StepTrace, read_trace
from atdp_cli.training import noise, step, trainer
from atdp_cli.training.clip import ghost
from atdp_cli.training.clip import per_record as reference_engine
from atdp_cli.training.noise import clip_and_sum, poisson_sample
from atdp_cli.training.recipe import Train
from atdp_cli.training.step import Noise
from tests.hardening.resumption import Place, finished, run

Patch = pytest.MonkeyPatch
Mutation = Callable[[Patch], None]


def scaled_by(factors: Callable[[int, float], float]) -> Mutation:
    """The loop hands the noise another standard deviation: (step from 0, the right one) → the one used."""

    def mutate(patch: Patch) -> None:
        made, taken = Noise, 0

        def mutated(stream: KeyStream, standard_deviation: float, ranks: Any) -> Any:
            nonlocal taken
            taken += 1
            return made(stream, factors(taken - 1, standard_deviation), ranks)

        patch.setattr(trainer, "Noise", mutated)

    return mutate


def first_sigma() -> Mutation:
    """The first epoch's σ in every epoch."""
    kept: list[float] = []

    def factors(_: int, right: float) -> float:
        kept.append(right)
        return kept[0]

    return scaled_by(factors)


def release_scaled(patch: Patch) -> None:
    """σ/100 in the release of word frequencies."""
    right = noisy_statistic.add_release_noise
    patch.setattr(frequencies, "add_release_noise", lambda total, sigma, *rest: right(total, sigma / 100, *rest))


def sampled_at(factor: float) -> Mutation:
    def mutate(patch: Patch) -> None:
        right = poisson_sample
        patch.setattr(trainer, "poisson_sample", lambda records, q, *rest: right(records, factor * q, *rest))

    return mutate


def taken_by(factor: float) -> Mutation:
    """The sampler compares with another rate than the one that it says."""

    def mutate(patch: Patch) -> None:
        right = poisson_sample

        def mutated(records: int, rate: float, stream: KeyStream, observe: Observe) -> Any:
            def said(used: Any) -> None:
                observe(used.model_copy(update={"sampling_rate": rate}))

            return right(records, factor * rate, stream, said)

        patch.setattr(trainer, "poisson_sample", mutated)

    return mutate


def clipped_at(factor: float) -> Mutation:
    def mutate(patch: Patch) -> None:
        right = clip_and_sum
        patch.setattr(
            trainer,
            "clip_and_sum",
            lambda engine, model, records, bound, *rest: right(engine, model, records, factor * bound, *rest),
        )

    return mutate


def unclipped(patch: Patch) -> None:
    """No factor is below 1, in any engine: their comparison at the start of a run finds nothing."""
    for engine in (ghost, reference_engine):
        patch.setattr(engine, "clip_factor", lambda norm, bound: 1.0)


def half_of_the_parameters(patch: Patch) -> None:
    right = noise.add_noise
    patch.setattr(step, "add_noise", lambda parts, *rest: right(parts[: len(parts) // 2], *rest))


def half_of_each_block(patch: Patch) -> None:
    right = noise.normals

    def mutated(stream: KeyStream, count: int, device: Any = None) -> torch.Tensor:
        drawn = right(stream, count, device)
        drawn[count // 2 :] = 0
        return drawn

    patch.setattr(noise, "normals", mutated)


def no_noise(patch: Patch) -> None:
    patch.setattr(noise, "normals", lambda stream, count, device=None: 0 * NORMALS(stream, count, device))


def no_call_of_the_noise(patch: Patch) -> None:
    def mutated(
        model: Any, optimizer: Any, total: Any, noise: Any, *, batch: int, first: bool, observe: Observe
    ) -> None:
        step.optimizer_step(model, optimizer, [part.div_(batch) for part in total], noise.ranks, first=first)

    patch.setattr(trainer, "noisy_step", mutated)


def once_drawn(patch: Patch) -> None:
    """Every step starts from the same key again."""
    made = Noise
    patch.setattr(trainer, "Noise", lambda stream, sigma, ranks: made(insecure_stream(7, "noise"), sigma, ranks))


def in_fp32(patch: Patch) -> None:
    patch.setattr(noise, "normals", lambda stream, count, device=None: NORMALS(stream, count, device).float())


def every_record_is_clipped(patch: Patch) -> None:
    """The clip is given other records than the sampler drew."""
    patch.setattr(trainer, "local_items", lambda ranks, sample: [*sample, *sample[:1]])


NORMALS = noise.normals

STEPS: dict[str, tuple[Mutation, str]] = {
    "the first epoch's σ in every epoch": (first_sigma(), "epoch 2, step 4: the noise's standard deviation was"),
    "the σ of another epoch": (
        scaled_by(lambda taken, right: right * (1.1 if taken < 3 else 1 / 1.1)),
        "epoch 1, step 1: the noise's standard deviation was",
    ),
    "σ/100": (scaled_by(lambda _, right: right / 100), "the noise's standard deviation was"),
    "no noise": (no_noise, "epoch 1, step 1: the noise's root mean square was 0"),
    "no call of the noise": (no_call_of_the_noise, "what was done was sampled, clipped, and sampled, clipped, noised"),
    "noise on half of the parameters": (half_of_the_parameters, "the number of coordinates with noise was"),
    "noise on half of each block": (half_of_each_block, "the noise's root mean square was"),
    "noise drawn once": (once_drawn, "epoch 1, step 2: the first draw for what was noised was 0"),
    "noise in fp32": (in_fp32, "the noise's dtype was float32"),
    "q halved": (sampled_at(0.5), "epoch 1, step 1: the sampling rate was"),
    "q halved where it is compared": (taken_by(0.5), "all steps: the share of records that were sampled was"),
    "q doubled where it is compared": (taken_by(2.0), "all steps: the share of records that were sampled was"),
    "C doubled": (clipped_at(2.0), "epoch 1, step 1: the norm bound was"),
    "no clip": (unclipped, "the length of the clipped sum was"),
    "a record twice": (every_record_is_clipped, "the number of clipped records was"),
}

QUICK = {"the first epoch's σ in every epoch", "no noise", "q halved", "C doubled", "no clip", "noise drawn once"}


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.ci) for name in STEPS])
def test_a_step_that_is_not_what_was_paid_for_ends_the_run(place: Place, monkeypatch: Patch, name: str) -> None:
    mutate, said = STEPS[name]
    mutate(monkeypatch)
    request = place.request("atdp")
    [stage] = request.recipe
    assert isinstance(stage, Train)
    longer = request.replace(recipe=(replace(stage, epochs=12),)) if "compared" in name else request
    with pytest.raises(ConformanceError) as ended:
        run(longer)
    assert said in ended.value.problem
    assert ended.value.problem.count("\n") == 0
    assert not (place.folder / "out").exists()
    assert not (place.folder / "out.private").exists()


# --- Releases


def quiet(factor: float) -> Mutation:
    """What is drawn is too small, behind the back of the function that scales and says so."""

    def mutate(patch: Patch) -> None:
        right = discrete_gaussian
        patch.setattr(
            noisy_statistic,
            "discrete_gaussian",
            lambda variance, count, stream: np.trunc(factor * right(variance, count, stream)).astype(np.int64),
        )

    return mutate


RELEASES: dict[str, tuple[str, Mutation, str]] = {
    "σ/100 for the words": ("fitted-decoys", release_scaled, "the noise's standard deviation was 0.025"),
    "σ/100 drawn for the words": ("fitted-decoys", quiet(0.01), "the noise's root mean square was"),
    "no noise for the words": ("fitted-decoys", quiet(0.0), "the noise's root mean square was 0"),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", RELEASES)
def test_a_release_that_is_not_what_was_paid_for_ends_the_run(place: Place, monkeypatch: Patch, name: str) -> None:
    recipe, mutate, said = RELEASES[name]
    mutate(monkeypatch)
    with pytest.raises(ConformanceError) as ended:
        run(place.request(recipe))
    assert said in ended.value.problem
    assert "release of" in ended.value.problem
    assert not (place.folder / "out").exists()


# --- What a sound run records


@pytest.mark.ci
@pytest.mark.parametrize("recipe", ["atdp", "fitted-decoys+dp-sgd", "dp-sgd+noise"])
def test_a_sound_run_says_what_it_used(place: Place, recipe: str) -> None:
    """By the law of what it drew, and not only by its journal."""
    done = finished(place.request(recipe))
    private = Path(done.output).with_name("out.private")
    [session] = read_trace(private / "trace.jsonl")
    assert (private / "trace.jsonl").stat().st_mode & 0o777 == 0o600
    steps = [entry for _, entry in session.entries if isinstance(entry, StepTrace)]
    assert [entry.step for entry in steps] == [step for _ in {entry.stage for entry in steps} for step in range(1, 7)]
    for entry in steps:
        noised = entry.uses[-1]
        assert isinstance(noised, Noised)
        mean_square = noised.squares / noised.coordinates / noised.standard_deviation**2
        assert abs(mean_square - 1) < 8 * (2 / noised.coordinates) ** 0.5
        assert noised.coordinates == 40320


# --- Interruptions


@pytest.mark.ci
def test_an_interrupted_run_is_verified_in_all_its_sessions(place: Place) -> None:
    request = place.request(checkpoint_every=60.0)
    assert run(request, stop=3) is None
    done = finished(request.replace(resume=True))
    first, second = read_trace(Path(done.output).with_name("out.private") / "trace.jsonl")
    assert [len(first.entries), len(second.entries)] == [3, 3]
    sizes = [size for size, _ in journal_lines(Path(done.output).with_name("out.private") / "journal.jsonl")]
    assert (first.journal, second.journal) == (0, sizes[2])
    uses = [entry.uses[0] for _, entry in second.entries if isinstance(entry, StepTrace)]
    starts = [used.start for used in uses if isinstance(used, Sampled)]
    assert starts == [0, 57, 114]


@pytest.mark.ci
@pytest.mark.parametrize("lost", [0, 40])
def test_a_line_of_a_killed_session_may_lack_its_use_and_its_end(place: Place, lost: int) -> None:
    """What SIGKILL leaves: a line of the journal that nothing used, and a line of the trace that is cut off."""
    request = place.request(checkpoint_every=60.0)
    assert run(request, stop=3) is None
    root = place.folder / "out.partial"
    lines = (root / "journal.jsonl").read_text().splitlines(keepends=True)
    (root / "journal.jsonl").write_text("".join([*lines, lines[-1]]))
    if lost:
        (root / "trace.jsonl").write_bytes((root / "trace.jsonl").read_bytes()[:-lost])
    done = finished(request.replace(resume=True))
    first, second = read_trace(Path(done.output).with_name("out.private") / "trace.jsonl")
    assert [len(first.entries), len(second.entries)] == [3 - (lost > 0), 3]


@pytest.mark.ci
def test_a_mutation_before_an_interruption_is_found_after_it(place: Place, monkeypatch: Patch) -> None:
    request = place.request(checkpoint_every=60.0)
    with monkeypatch.context() as patch:
        scaled_by(lambda _, right: right / 2)(patch)
        assert run(request, stop=3) is None
    with pytest.raises(ConformanceError, match="epoch 1, step 1: the noise's standard deviation"):
        run(request.replace(resume=True))
    assert not (place.folder / "out").exists()
