"""DP-AdamBC: Adam whose second moment is corrected for the noise that privacy added.

Source: Tang, Shpilevskiy and Lécuyer 2024, "DP-AdamBC: Your DP-Adam Is Actually DP-SGD (Unless You Apply Bias
Correction)", Algorithm 1, with the decoupled weight decay of AdamW. It works on noisy gradients only, so it costs no
privacy.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

BETAS = (0.9, 0.999)
EPSILON = 1e-8
"""Those of torch's AdamW."""


class DPAdamBC(torch.optim.Optimizer):
    """θ ← (1 − ηλ)θ − η·m̂ / √max(v̂ − Φ̂, floor·Φ̂), with m̂ and v̂ as in Adam.

    Φ̂ is the noise's share of v̂: the mean of the steps' noise variances (σC/B)² in the very weights in which v̂ is the
    mean of their squared gradients, so that it is right while σ changes. In the paper, σ does not, and Φ̂ = (σC/B)².
    Without noise it is torch's AdamW.
    """

    def __init__(
        self, parameters: Iterable[torch.nn.Parameter], *, learning_rate: float, weight_decay: float, floor: float
    ) -> None:
        super().__init__(parameters, {"lr": learning_rate, "weight_decay": weight_decay, "floor": floor})
        self._steps = 0
        self._noise = 0.0
        self._told: float | None = None

    def tell(self, noise_variance: float) -> None:
        """Say what the noise's variance (σC/B)² is in each coordinate of the gradients of the next step."""
        self._told = noise_variance

    @property
    def counts(self) -> dict[str, torch.Tensor]:
        """What it has counted beside its moments, in fp64, which holds it exactly: steps, and Φ̂ before correction."""
        return {
            "steps": torch.tensor(float(self._steps), dtype=torch.float64),
            "variance": torch.tensor(self._noise, dtype=torch.float64),
        }

    def count_from(self, counts: Mapping[str, torch.Tensor]) -> None:
        """Go on from the counts of another."""
        self._steps, self._noise = int(counts["steps"]), float(counts["variance"])

    @property
    def noise(self) -> float:
        """Φ̂, after at least one step."""
        return float(self._noise / (1 - BETAS[1] ** self._steps))

    def signal(self, parameter: torch.Tensor) -> torch.Tensor:
        """v̂ − Φ̂ of each coordinate, below 0 where chance has it; after at least one step."""
        found: torch.Tensor = self.state[parameter]["second"] / (1 - BETAS[1] ** self._steps)
        return found.sub_(self.noise)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Step on the gradients that are there; none is computed.

        Raises:
            ValueError: The variance of these gradients' noise was not told.
        """
        if self._told is None or closure is not None:
            raise ValueError("AdamBC steps on gradients that are there, whose noise it was told of")
        self._steps += 1
        self._noise = BETAS[1] * self._noise + (1 - BETAS[1]) * self._told
        self._told = None
        for group in self.param_groups:
            for parameter in group["params"]:
                self._step(parameter, group)

    def _step(self, parameter: torch.Tensor, settings: dict[str, Any]) -> None:
        state, dtype = self.state[parameter], torch.promote_types(parameter.dtype, torch.float32)
        if not state:
            state["first"] = torch.zeros_like(parameter, dtype=dtype)
            state["second"] = torch.zeros_like(parameter, dtype=dtype)
        if parameter.grad is None:
            raise ValueError("a parameter has no gradient")
        gradient = parameter.grad.to(dtype)
        state["first"].lerp_(gradient, 1 - BETAS[0])
        state["second"].mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
        scale = self.signal(parameter).clamp_(min=settings["floor"] * self.noise).sqrt_().add_(EPSILON)
        length = settings["lr"] / (1 - BETAS[0] ** self._steps)
        parameter.mul_(1 - settings["lr"] * settings["weight_decay"])
        parameter.sub_((state["first"] / scale).to(parameter.dtype), alpha=length)
