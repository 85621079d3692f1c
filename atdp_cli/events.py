"""Progress as plain data: the core calls `notify(event)`, and only `cli` shows it."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

_CAPITAL = re.compile("(?<!^)(?=[A-Z])")


@dataclass(frozen=True, kw_only=True)
class Event:
    """Progress of one kind.

    Attributes:
        name: What the event is called in JSON: that of its class in snake case, unless the class declares another.
    """

    name: ClassVar[str]

    def __init_subclass__(cls, name: str = "") -> None:
        cls.name = name or _CAPITAL.sub("_", cls.__name__).lower()


@dataclass(frozen=True, kw_only=True)
class RecordsRead(Event):
    """`done` of `total` records have passed through `task`; `total` is None while unknown."""

    task: str
    done: int
    total: int | None


@dataclass(frozen=True, kw_only=True)
class StageStarted(Event):
    """A stage of the recipe begins."""

    stage: str
    steps: int


@dataclass(frozen=True, kw_only=True)
class StepDone(Event):
    """One optimizer step of a stage was applied; `tokens` of the sample went through it. For the screen."""

    stage: str
    step: int
    steps: int
    noise_multiplier: float | None
    tokens: int


@dataclass(frozen=True, kw_only=True)
class EpochDone(Event):
    """An epoch ended. Perplexities are of held-out private text: for the screen, not for `OUT/`."""

    stage: str
    epoch: int
    epochs: int
    all_tokens: float | None
    sensitive: float | None
    other: float | None


@dataclass(frozen=True, kw_only=True)
class TrialDone(Event):
    """`done` of at most `total` trials for the learning rate of a stage are over."""

    stage: str
    done: int
    total: int


@dataclass(frozen=True, kw_only=True)
class LearningRateChosen(Event):
    """The search for a stage's learning rate chose this η."""

    stage: str
    learning_rate: float


@dataclass(frozen=True, kw_only=True)
class EpochRestored(Event):
    """A stage went back to the weights of the epoch after which its loss on decoyed held-out text was lowest."""

    stage: str
    epoch: int


@dataclass(frozen=True, kw_only=True)
class NodesScored(Event):
    """The audit has scored `done` of `total` inner nodes of the candidate trie."""

    model: str
    done: int
    total: int


@dataclass(frozen=True, kw_only=True)
class CrossChecked(Event):
    """A language model was asked about the sentences that `asked` and `known` count.

    Attributes:
        asked: Sentences that were sent.
        known: Sentences whose answer was known.
        disagreements: Sentences about which it disagrees with the detector.
        unusable: Sentences without a usable answer; they count as disagreements.
    """

    asked: int
    known: int
    disagreements: int
    unusable: int


@dataclass(frozen=True, kw_only=True)
class ChoiceWarning(Event):
    """A choice the user might not expect was made; `reason` says which and why."""

    what: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class ReviewQueued(Event):
    """Sentences for people to review were written during the run."""

    queue: str
    sentences: int


@dataclass(frozen=True, kw_only=True)
class StateSaved(Event):
    """The run can be resumed from here: after `step` steps of the stage number `stage`, counted from 1."""

    stage: int
    step: int


@dataclass(frozen=True, kw_only=True)
class Resumed(Event, name="resumed"):
    """An interrupted run was resumed after `step` of the stage number `stage`, counted from 1.

    Attributes:
        stages: How many the recipe has; `stage` is one more where all are done.
        again: Steps with noise that are taken again, and spent twice.
    """

    stage: int
    stages: int
    step: int
    again: int


@dataclass(frozen=True, kw_only=True)
class AlreadyFinished(Event, name="already_finished"):
    """The run that was to be resumed has ended already; its result is in `output`."""

    output: str


Notify = Callable[[Event], None]


def ignore(event: Event) -> None:
    """The `notify` of callers that want no progress."""
