"""The objectives that a stage of training may have: which loss each token of a record has. Never imports torch."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from atdp_cli.options import Option
from atdp_cli.privacy.schedule import NoiseMultiplier
from atdp_cli.ranges import Positive, Share, validated
from atdp_cli.training.objectives.unlearn import Unlearn

_TRAINING = Option(panel="Training", public=True)


@validated
class Uniform:
    """Cross-entropy with weight 1 on every token."""

    summary: ClassVar[str] = "uniform"

    kind: Literal["uniform"] = "uniform"

    def describe(self) -> str:
        """The objective in the report's words."""
        return self.summary


@validated
class Weighted:
    """Cross-entropy with weight 1 on sensitive tokens and function words, and w ≤ 1 on the rest.

    Attributes:
        weight: A public constant in [0, 1]; `record` (from the record's own share of sensitive tokens); or
            `released` (from the corpus' share, released once with Gaussian noise and put in the ledger).
        target_share: r in (0, 1), the share of the weight that sensitive tokens should carry; not for a constant.
        release_noise_multiplier: σ of the release, whose sensitivity is 1 record.
    """

    summary: ClassVar[str] = "weighted"

    kind: Literal["weighted"] = "weighted"
    weight: Annotated[Share | Literal["record", "released"], _TRAINING] = 0.2
    """w of tokens without a flag: a number, record (from the record's own share of flagged tokens) or released (from
    the corpus' share, released with noise). Default: 0.2."""
    target_share: Annotated[float, Field(gt=0, lt=1), _TRAINING] = 0.5
    """Share of the weight that flagged tokens should carry, for record and released. Default: 0.5."""
    release_noise_multiplier: NoiseMultiplier = 20.0

    def describe(self) -> str:
        """The objective in the report's words, with how the weight w is chosen."""
        chosen = {"record": "w from each record", "released": "w released"}
        return f"weighted, {chosen[self.weight] if isinstance(self.weight, str) else f'w = {self.weight:g}'}"


Target = Literal["reference", "without-true"]


@validated
class Anchored:
    """KL(reference ‖ model) on sensitive tokens; cross-entropy on the rest, as `Weighted` weighs it.

    A sensitive token is pulled back to what the reference, a public model, says at its place; what stands there in
    the record is not learnt.

    Attributes:
        weight: w of tokens that are neither sensitive nor function words, a public constant in [0, 1].
        strength: The weight of a sensitive token in its record's sum, above 0; function words have 1.
        temperature: T > 0; the reference's distribution is softmax(its logits / T).
        target: `reference` is that distribution; `without-true` is it given that the token is not the one that
            stands there, so that what the reference knows of the record is not taught either.
    """

    summary: ClassVar[str] = "anchored"

    kind: Literal["anchored"] = "anchored"
    weight: Share = 0.2
    strength: Positive = 1.0
    temperature: Positive = 1.0
    target: Target = "reference"

    def describe(self) -> str:
        """The objective in the report's words, with the settings that are not the default."""
        default = Anchored()
        words = ["anchored to the reference"]
        words += ["the true token left out"] if self.target == "without-true" else []
        words += [f"temperature {self.temperature:g}"] if self.temperature != default.temperature else []
        words += [f"strength {self.strength:g}"] if self.strength != default.strength else []
        return ", ".join((*words, f"w = {self.weight:g}"))


@validated
class Distilled:
    """Cross-entropy on sensitive tokens; on the rest (1 − λ)·cross-entropy + λ·KL(start ‖ model).

    The start is the model at the start of the stage. What it predicts of other text is kept, where cross-entropy alone
    would learn that text by heart a second time (Li and Hoiem 2016, learning without forgetting; Maini et al. 2024, KL
    minimisation). For stages without noise.

    Attributes:
        share: λ in (0, 1].
    """

    summary: ClassVar[str] = "unflagged tokens distilled from the start"

    kind: Literal["distilled"] = "distilled"
    share: Annotated[float, Field(gt=0, le=1)] = 0.5

    def describe(self) -> str:
        """The objective in the report's words."""
        return f"{self.summary}, λ = {self.share:g}"


@validated
class Nothing:
    """No loss: a private stage's noise alone, the control that any recipe must beat."""

    summary: ClassVar[str] = "noise alone"

    kind: Literal["nothing"] = "nothing"

    def describe(self) -> str:
        """The objective in the report's words."""
        return "none"


@validated
class Sensitive:
    """Cross-entropy on sensitive tokens alone, each with weight 1: what a task vector of them is trained on."""

    summary: ClassVar[str] = "flagged tokens alone"

    kind: Literal["sensitive"] = "sensitive"

    def describe(self) -> str:
        """The objective in the report's words."""
        return self.summary


Objective = Annotated[
    Uniform | Weighted | Anchored | Distilled | Sensitive | Unlearn | Nothing, Field(discriminator="kind")
]
