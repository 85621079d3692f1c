"""DP-AdamBC: Adam whose second moment is corrected for the noise that privacy added.

Source: Tang, Shpilevskiy and Lécuyer 2024, "DP-AdamBC: Your DP-Adam Is Actually DP-SGD (Unless You Apply Bias
Correction)", Algorithm 1, with the decoupled weight decay of AdamW. It reads noisy gradients only, so it costs no
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

    Φ̂ is the noise's share of v̂: the mean of the steps' noise variances (σC/B)², weighted as v̂ weights their squared
    gradients, so that it is right while σ changes. In the paper σ is constant, and Φ̂ = (σC/B)². Without noise this is
    torch's AdamW.
    """

    def __init__(
        self, parameters: Iterable[torch.nn.Parameter], *, learning_rate: float, weight_decay: float, floor: float
    ) -> None:
        super().__init__(parameters, {"lr": learning_rate, "weight_decay": weight_decay, "floor": floor})
        self._steps = 0
        self._variance = 0.0
        self._next_variance: float | None = None

    def set_noise_variance(self, variance: float) -> None:
        """Set the noise's variance (σC/B)² in each coordinate of the gradients of the next step."""
        self._next_variance = variance

    @property
    def noise_state(self) -> dict[str, torch.Tensor]:
        """Its state beside the moments, in fp64, which holds it exactly: steps, and Φ̂ before bias correction."""
        return {
            "steps": torch.tensor(float(self._steps), dtype=torch.float64),
            "variance": torch.tensor(self._variance, dtype=torch.float64),
        }

    def load_noise_state(self, state: Mapping[str, torch.Tensor]) -> None:
        """Restore what `noise_state` gave."""
        self._steps, self._variance = int(state["steps"]), float(state["variance"])

    @property
    def noise(self) -> float:
        """Φ̂, after at least one step."""
        return float(self._variance / (1 - BETAS[1] ** self._steps))

    def signal(self, parameter: torch.Tensor) -> torch.Tensor:
        """v̂ − Φ̂ of each coordinate, which can be below 0 by chance; after at least one step."""
        second: torch.Tensor = self.state[parameter]["second"] / (1 - BETAS[1] ** self._steps)
        return second.sub_(self.noise)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Step on the gradients that the parameters have; it computes none.

        Raises:
            ValueError: The variance of these gradients' noise was not set, or a closure was given.
        """
        if self._next_variance is None or closure is not None:
            raise ValueError("set_noise_variance comes before each step, and a step takes no closure")
        self._steps += 1
        self._variance = BETAS[1] * self._variance + (1 - BETAS[1]) * self._next_variance
        self._next_variance = None
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
