"""The objectives of stages: settings, what each asks of its stage, and words for reports. Never imports torch.

The loss of most is a weighted sum over tokens (`examples.py`). That of machine unlearning is in `unlearning.py`.
`Interpolate` trains nothing: it changes the weights once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from atdp_cli.settings import Positive, Share, validated

UnflaggedWeight = Share | Literal["record"]

TargetShare = Annotated[float, Field(gt=0, lt=1)]


@dataclass(frozen=True, kw_only=True)
class Demands:
    """The requirements of an objective, whatever its settings are.

    Attributes:
        records: Whether any record has a say in the stage.
        flags: Whether flagged tokens count otherwise than others.
        noise: Whether the stage may have noise, or must.
        raw: Whether the stage must read raw text.
        reference: Whether a public model is read.
        start: Whether the loss depends on the model as it was at the stage's start.
        function_weight, unflagged_weight: Of function words and of other tokens without a flag; flagged tokens have 1.
        distilled: Which tokens learn a model's distribution: flagged ones the reference's, or others the start's.
    """

    records: bool = True
    flags: bool = True
    noise: Literal["any", "never", "always"] = "any"
    raw: bool = False
    reference: bool = False
    start: bool = False
    function_weight: float = 1.0
    unflagged_weight: float = 1.0
    distilled: Literal["flagged", "others"] | None = None


@validated
class Uniform:
    """Cross-entropy with weight 1 on every token."""

    demands: ClassVar[Demands] = Demands(flags=False)
    summary: ClassVar[str] = "uniform"

    kind: Literal["uniform"] = "uniform"

    def describe(self) -> str:
        """The objective in the report's words."""
        return self.summary


@validated
class Weighted:
    """Cross-entropy with weight 1 on sensitive tokens and function words, and w ≤ 1 on the rest.

    Attributes:
        unflagged_weight: w, a public constant in [0, 1], or `record`: from the record's own share of sensitive tokens.
        target_share: r in (0, 1), the share of the weight that sensitive tokens should carry; not for a constant.
    """

    demands: ClassVar[Demands] = Demands()
    summary: ClassVar[str] = "weighted"

    kind: Literal["weighted"] = "weighted"
    unflagged_weight: UnflaggedWeight = 0.2
    target_share: TargetShare = 0.5

    def describe(self) -> str:
        """The objective in the report's words, with how the weight w is chosen."""
        weight = self.unflagged_weight
        return f"weighted, w {'from each record' if isinstance(weight, str) else f'= {weight:g}'}"


@validated
class Distilled:
    """Cross-entropy on sensitive tokens; on the rest (1 − λ)·cross-entropy + λ·KL(start ‖ model).

    The start is the model at the start of the stage. What it predicts of other text is kept, where cross-entropy alone
    would learn that text by heart a second time (Li and Hoiem 2016, learning without forgetting; Maini et al. 2024, KL
    minimisation). For stages without noise.

    Attributes:
        share: λ in (0, 1].
    """

    demands: ClassVar[Demands] = Demands(noise="never", start=True, distilled="others")
    summary: ClassVar[str] = "unflagged tokens distilled from the start"

    kind: Literal["distilled"] = "distilled"
    share: Annotated[float, Field(gt=0, le=1)] = 0.5

    def describe(self) -> str:
        """The objective in the report's words."""
        return f"{self.summary}, λ = {self.share:g}"


@validated
class Anchored:
    """Baseline: KL(reference ‖ model) on flagged tokens; on the rest cross-entropy as `Weighted` has it, with w = 0.2.

    What stands at a flagged place in the record is not learnt.
    """

    demands: ClassVar[Demands] = Demands(reference=True, unflagged_weight=0.2, distilled="flagged")
    summary: ClassVar[str] = "anchored"

    kind: Literal["anchored"] = "anchored"

    def describe(self) -> str:
        """The objective in the report's words."""
        return f"anchored to the reference, w = {self.demands.unflagged_weight:g}"


@validated
class NoLoss:
    """Baseline: the noise of a private stage without its gradient, which any recipe must beat."""

    demands: ClassVar[Demands] = Demands(records=False, noise="always")
    summary: ClassVar[str] = "noise alone"

    kind: Literal["no-loss"] = "no-loss"

    def describe(self) -> str:
        """The objective in the report's words."""
        return "none"


@validated
class Interpolate:
    """Baseline without training: θ ← θ_ref + β(θ − θ_ref).

    Where the reference is the model that the run starts from, β = −α negates the task vector of the stages before
    (Ilharco et al. 2023): θ ← θ_ref − α(θ − θ_ref).

    Attributes:
        beta: β in [−4, 1], how far from the reference to the model the result lies; below 0 beyond the reference.
    """

    demands: ClassVar[Demands] = Demands(records=False, noise="never", raw=True, reference=True)
    summary: ClassVar[str] = "weights interpolated"

    kind: Literal["interpolate"] = "interpolate"
    beta: Annotated[float, Field(ge=-4, le=1)] = 0.25

    def describe(self) -> str:
        """The objective in the report's words."""
        return f"{self.summary}, β = {self.beta:g}"


@validated
class FlaggedOnly:
    """Cross-entropy on flagged tokens alone, each with weight 1: what a task vector of them is trained on."""

    demands: ClassVar[Demands] = Demands(noise="never", function_weight=0.0, unflagged_weight=0.0)
    summary: ClassVar[str] = "flagged tokens alone"

    kind: Literal["flagged-only"] = "flagged-only"

    def describe(self) -> str:
        """The objective in the report's words."""
        return self.summary


@validated
class GradientDifference:
    """Unlearning: λ·log π(y) of a record's flagged targets y, and cross-entropy on the rest.

    The likelihood of flagged tokens falls without bound. Source: Liu, Liu and Stone 2022; Maini et al. 2024, TOFU.

    Attributes:
        strength: λ > 0.
    """

    demands: ClassVar[Demands] = Demands(noise="never", raw=True)
    summary: ClassVar[str] = "gradient difference"

    kind: Literal["gradient-difference"] = "gradient-difference"
    strength: Positive = 1.0

    def describe(self) -> str:
        """The objective in the report's words."""
        return f"unlearning by {self.summary}, λ = {self.strength:g}"


@validated
class NPO:
    """Unlearning: λ·(2/β)·log(1 + (π(y)/π₀(y))^β) of a record's flagged targets y, and cross-entropy on the rest.

    π₀ is the model at the start of the stage. For β → 0 the gradient is that of gradient difference.
    Source: Zhang et al. 2024, eq. 3.

    Attributes:
        strength: λ > 0.
        beta: β > 0.
    """

    demands: ClassVar[Demands] = Demands(noise="never", raw=True, start=True)
    summary: ClassVar[str] = "NPO"

    kind: Literal["npo"] = "npo"
    strength: Positive = 1.0
    beta: Positive = 0.1

    def describe(self) -> str:
        """The objective in the report's words."""
        return f"unlearning by {self.summary}, λ = {self.strength:g}, β = {self.beta:g}"


@validated
class SimNPO:
    """Unlearning: −λ·(2/β)·log σ(−(β/|y|)·log π(y) − γ) of a record's flagged targets y, and cross-entropy on the rest.

    Its gradient is one of a mean over y, the others' one of a sum: λ of the size of |y| weighs a token alike.
    Source: Fan et al. 2024.

    Attributes:
        strength: λ > 0.
        beta: β > 0.
        margin: γ ≥ 0.
    """

    demands: ClassVar[Demands] = Demands(noise="never", raw=True)
    summary: ClassVar[str] = "SimNPO"

    kind: Literal["simnpo"] = "simnpo"
    strength: Positive = 1.0
    beta: Positive = 2.5
    margin: Annotated[float, Field(ge=0)] = 0.0

    def describe(self) -> str:
        """The objective in the report's words."""
        return f"unlearning by {self.summary}, λ = {self.strength:g}, β = {self.beta:g}, γ = {self.margin:g}"


@validated
class RMU:
    """Unlearning: λ·(mean squared distance of flagged tokens' states behind layer ℓ to c·u), for the rest α·(that to
    the start).

    The state of a token is that from which it is predicted; u is random. Source: Li et al. 2024, WMDP.

    Attributes:
        strength: λ > 0.
        layer: ℓ, counted from 1; None for the middle one.
        steering: c > 0, the length of the control vector; the paper's for Zephyr 7B. States of other models have other
            lengths, and c has to go with them.
        retain: α ≥ 0. The paper's 1200 is for forget and retain texts of different subjects.
    """

    demands: ClassVar[Demands] = Demands(noise="never", raw=True, start=True)
    summary: ClassVar[str] = "RMU"

    kind: Literal["rmu"] = "rmu"
    strength: Positive = 1.0
    layer: Annotated[int, Field(ge=1)] | None = None
    steering: Positive = 6.5
    retain: Annotated[float, Field(ge=0)] = 1.0

    def describe(self) -> str:
        """The objective in the report's words."""
        layer = "the middle one" if self.layer is None else str(self.layer)
        settings = f"λ = {self.strength:g}, c = {self.steering:g}, α = {self.retain:g}, layer {layer}"
        return f"unlearning by {self.summary}, {settings}"


Unlearning = GradientDifference | NPO | SimNPO | RMU
"""Objectives whose loss is no sum over tokens. It goes by autograd, without clipping, on whole models."""

Objective = Annotated[
    Uniform
    | Weighted
    | Distilled
    | Anchored
    | NoLoss
    | Interpolate
    | GradientDifference
    | NPO
    | SimNPO
    | RMU
    | FlaggedOnly,
    Field(discriminator="kind"),
]

BASELINES: Mapping[str, Mapping[str, Objective]] = {
    "anchored": {"anchored": Anchored()},
    "noise": {"noise": NoLoss()},
    "interpolate": {"interpolate": Interpolate()},
    "gradient-difference": {"gradient-difference": GradientDifference()},
    "npo": {"npo": NPO()},
    "simnpo": {"simnpo": SimNPO()},
    "rmu": {"rmu": RMU()},
    "negated": {"forget": FlaggedOnly(), "negated": Interpolate(beta=-1.0)},
}
"""The recipes that measured systems are compared with: each a stage's name with its objective, in order."""
