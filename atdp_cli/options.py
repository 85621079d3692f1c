"""How a setting declares itself: once, as a field of a pydantic model.

    from typing import Annotated
    from pydantic import BaseModel, Field
    from atdp_cli.options import Option

    class Training(BaseModel):
        epochs: Annotated[int, Field(ge=1, description="Passes over the corpus."), Option(panel="Training")] = 3

Type, bounds, default and help are the field's own. `Option` adds what only a setting has. The command line, the recipe
file, the fingerprint of a run and the help page are made from such fields.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Option:
    """What a field says of itself beside its type, bounds, default and description.

    Attributes:
        panel: The heading under which `--help` shows it.
        flags: Its names on the command line; none for `--` and the field's name with hyphens.
        metavar: What `--help` shows for its value; None for what the type says.
        fingerprint: Whether two runs that differ in it are different runs, so that neither resumes the other.
        public: Whether its value may be written to OUT/.
    """

    panel: str
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    fingerprint: bool = True
    public: bool = False
