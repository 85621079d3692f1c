"""The settings of machine unlearning: flagged tokens are to be forgotten, others to be kept. Never imports torch."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Literal

from pydantic import Field

from atdp_cli.ranges import Positive, contradiction, validated

Method = Literal["gradient-difference", "npo", "simnpo", "rmu"]

_WORDS: Mapping[Method, str] = {
    "gradient-difference": "gradient difference",
    "npo": "NPO",
    "simnpo": "SimNPO",
    "rmu": "RMU",
}
_BETAS: Mapping[Method, float] = {"npo": 0.1, "simnpo": 2.5}
"""The defaults of the papers."""

_OF_SOME: Mapping[str, tuple[Method, ...]] = {
    "beta": ("npo", "simnpo"),
    "margin": ("simnpo",),
    "layer": ("rmu",),
    "steering": ("rmu",),
    "retain": ("rmu",),
}
"""The methods that have a setting, where not all do."""


@validated
class Unlearn:
    """The loss of machine unlearning: of each record λ·(the forget loss of its flagged tokens) + the loss of the rest.

    The flagged targets of a record, together, are one sequence y. Without rmu, the rest's loss is cross-entropy.

    - gradient-difference: log π(y), so that the likelihood of y falls without bound (Liu, Liu and Stone 2022; Maini et
      al. 2024, TOFU).
    - npo: (2/β)·log(1 + (π(y)/π₀(y))^β), where π₀ is the model at the start of the stage (Zhang et al. 2024, eq. 3).
      For β → 0 its gradient is that of gradient-difference.
    - simnpo: −(2/β)·log σ(−(β/|y|)·log π(y) − γ), without a reference (Fan et al. 2024). Its gradient is one of a mean
      over y, the others' one of a sum: λ of the size of |y| weighs a token alike.
    - rmu: the mean squared distance of the hidden states behind layer ℓ to c·u, and for the rest α times that to what
      they were at the start (Li et al. 2024, WMDP). The state of a token is that from which it is predicted.

    Attributes:
        strength: λ > 0.
        beta: β > 0 of npo and simnpo; None for 0.1 and 2.5, as in the papers.
        margin: γ ≥ 0 of simnpo.
        layer: ℓ of rmu, counted from 1; None for the middle one.
        steering: c > 0 of rmu, the length of the control vector; the paper's for Zephyr 7B. States of other models
            have other lengths, and c has to go with them.
        retain: α ≥ 0 of rmu. The paper's 1200 is for forget and retain texts of different subjects.
    """

    kind: Literal["unlearn"] = "unlearn"
    method: Method
    strength: Positive = 1.0
    beta: Positive | None = None
    margin: Annotated[float, Field(ge=0)] = 0.0
    layer: Annotated[int, Field(ge=1)] | None = None
    steering: Positive = 6.5
    retain: Annotated[float, Field(ge=0)] = 1.0

    def __post_init__(self) -> None:
        for field in fields(self):
            methods = _OF_SOME.get(field.name, (self.method,))
            if self.method not in methods and getattr(self, field.name) != field.default:
                problem = f"{field.name} is a setting of {' and '.join(methods)}, not of {self.method}."
                raise contradiction(problem, "Leave it out.")

    @property
    def summary(self) -> str:
        """The method's name."""
        return _WORDS[self.method]

    @property
    def inverse_temperature(self) -> float:
        """β, also where it is the default."""
        return _BETAS.get(self.method, 1.0) if self.beta is None else self.beta

    @property
    def compares_with_start(self) -> bool:
        """Whether the loss depends on the model as it was at the start of the stage."""
        return self.method in ("npo", "rmu")

    def describe(self) -> str:
        """The objective in the report's words."""
        words = [f"unlearning by {self.summary}", f"λ = {self.strength:g}"]
        if self.method in _BETAS:
            words.append(f"β = {self.inverse_temperature:g}")
        if self.method == "simnpo":
            words.append(f"γ = {self.margin:g}")
        if self.method == "rmu":
            layer = "the middle one" if self.layer is None else str(self.layer)
            words += [f"c = {self.steering:g}", f"α = {self.retain:g}", f"layer {layer}"]
        return ", ".join(words)
