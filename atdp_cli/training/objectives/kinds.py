"""The objectives of atdp's own recipes: which loss each token of a record has. Never imports torch."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from atdp_cli.settings import Option, Share, validated
from atdp_cli.training.objectives.demands import Demands

_RARE = Option(flag=False, public=True)


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
    unflagged_weight: Annotated[Share | Literal["record"], _RARE] = 0.2
    """w of tokens without a flag: a number, or record (from the record's own share of flagged tokens). Default: 0.2."""
    target_share: Annotated[float, Field(gt=0, lt=1), _RARE] = 0.5
    """Share of the weight that flagged tokens should carry, for record. Default: 0.5."""

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
