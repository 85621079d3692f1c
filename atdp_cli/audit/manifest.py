"""The manifest: what was planted, where, and for which tokenizer."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, model_validator

from atdp_cli.audit.canary import Choice, Secret, Target, Template, parse_template
from atdp_cli.corpus.conversation import TOOLS
from atdp_cli.errors import AtdpError, InputError, UsageError
from atdp_cli.files.atomic_write import atomic_write
from atdp_cli.files.documents import MAX_FILE, read_document
from atdp_cli.model.chat import ChatTemplate, load_chat_template, without_ends
from atdp_cli.model.rendered import Message, render
from atdp_cli.model.windows import encode_record, tokenizer_fingerprint

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

Role = Literal["user", "assistant", "system"]
"""The role that says a canary in a conversation."""

ALIKE_BY_CHANCE = 1e-9
"""The least chance of drawing so many equal secrets with which a manifest counts as drawn at random."""


class PlantedCanary(BaseModel):
    """One canary of a manifest. Its `repr` leaves out all that gives the secret away.

    Attributes:
        secret: What fills each slot.
        planted: Whether it is in the corpus: the fall of its coin, where coins were tossed.
        repeats: How many records carry it, or would if it were planted.
        token_ids: `encode_record` of its record, by the tokenizer that it was planted for.
        positions: Line numbers of its records in the planted file, from 1.
        other: What its records say in its place if it is not planted, so that their number is no sign of the coin.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    secret: tuple[str, ...] = Field(repr=False)
    planted: bool = Field(repr=False)
    repeats: PositiveInt
    token_ids: tuple[Annotated[int, Field(ge=0)], ...] = Field(repr=False, min_length=1)
    positions: tuple[PositiveInt, ...] = Field(repr=False)
    other: tuple[str, ...] | None = Field(default=None, repr=False)


OPENING = "Go on."
"""What the user says first where a template wants it: the same in every canary."""


class Conversation(BaseModel):
    """How canaries are planted as conversations of one message, or of one behind what the user says first.

    Attributes:
        role: Who says it.
        before: What the template writes before it; what is said follows.
        end: The tokenizer's end token, which packing puts between conversations; None where it has none.
        chat_template: Which of the tokenizer's templates renders it; None for the only one, or that named default.
        opening: What the user says first, where the template takes no conversation that the role begins.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    role: Role
    before: str
    end: str | None = None
    chat_template: str | None = None
    opening: str | None = None

    def messages(self, text: str) -> list[Message]:
        """The conversation in which a canary is said."""
        return [*([] if self.opening is None else [("user", self.opening)]), (self.role, text)]


@dataclass(frozen=True, kw_only=True)
class Said:
    """Canaries as conversations of one message.

    Attributes:
        role: Who says it.
        text_field: Where the corpus has its conversations.
        chat_template: Which of the tokenizer's templates renders it; None for the only one, or that named default.
    """

    role: Role
    text_field: str
    chat_template: str | None = None

    def written(self, conversation: Conversation, lines: Sequence[str]) -> Callable[[str, int], str]:
        """Gives a canary's line among these, by its text and number.

        It has the fields that each of them has, whether of texts or of whole numbers, with values of its own: under
        --privacy-unit FIELD it is a record of its own, and run.holdout-by finds its group.
        """
        rows = [json.loads(line.removeprefix("\ufeff")) for line in lines if line.strip()]
        kinds = {name: {type(row.get(name)) for row in rows} for name in rows[0].keys() - {TOOLS, self.text_field}}
        largest = {name: max(row[name] for row in rows) for name, kind in kinds.items() if kind == {int}}

        def line(text: str, number: int) -> str:
            own = {
                name: largest[name] + number if name in largest else f"canary-{len(rows)}-{number}"
                for name, kind in kinds.items()
                if kind <= {int, str}
            }
            messages = [{"role": role, "content": content} for role, content in conversation.messages(text)]
            return json.dumps({**own, self.text_field: messages}, ensure_ascii=False)

        return line


class Manifest(BaseModel):
    """What was planted, where, and for which tokenizer. It holds the secrets, so keep it like one.

    Attributes:
        schema_version: Of the file format.
        kind: Tells this file from other JSON.
        template: As `parse_template` reads it.
        choices: The lines of every file that the template names.
        canaries: In the order drawn.
        tokenizer_sha256: `tokenizer_fingerprint` of the tokenizer it was planted for.
        records: Non-blank lines of the planted corpus.
        coins: Whether a fair coin decided for each canary if it was planted; without coins all are.
        drawn: Only secrets from the CSPRNG have a uniform rank under no memorisation, hence a p-value.
        conversation: Of canaries that are conversations; None for lines of text.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1]
    kind: Literal["atdp-canaries"]
    template: str
    choices: dict[str, tuple[str, ...]] = Field(repr=False)
    canaries: tuple[PlantedCanary, ...]
    tokenizer_sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    records: PositiveInt
    coins: bool
    drawn: Literal["csprng", "by-hand"]
    conversation: Conversation | None = None

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        try:
            for canary in self.canaries:
                self.slots().index_of(canary.secret)
                if canary.other is not None:
                    self.slots().index_of(canary.other)
        except (UsageError, InputError) as error:
            raise ValueError(error.problem) from None
        lines = [line for canary in self.canaries for line in canary.positions]
        if any(len(canary.positions) != canary.repeats for canary in self.canaries):
            raise ValueError("A canary has not as many positions as it has records.")
        if any(canary.planted != (canary.other is None) for canary in self.canaries):
            raise ValueError("A canary is planted and has another in its place, or neither.")
        if not self.coins and not all(canary.planted for canary in self.canaries):
            raise ValueError("A canary is not planted, and no coins were tossed.")
        if len(set(lines)) != len(lines):
            raise ValueError("Two repeats share a position.")
        if len(lines) > self.records:
            raise ValueError("There are more repeats than records.")
        if self._copied():
            raise ValueError("More canaries have the same secret than chance would draw.")
        return self

    def _copied(self) -> bool:
        """Whether secrets are equal because they were not drawn independently: one canary, counted many times.

        Each of n draws meets an earlier one with probability (n − 1)/pool at most, whatever came before, so at least k
        do with at most C(n, k)·((n − 1)/pool)^k. Secrets that were typed are not drawn, so no two may be alike.
        """
        n = len(self.canaries)
        again = n - len({canary.secret for canary in self.canaries})
        if not again or not self.calibrated:
            return again > 0
        drawn_alike = math.comb(n, again) * Fraction(n - 1, self.slots().pool) ** again
        return drawn_alike < ALIKE_BY_CHANCE

    def slots(self) -> Template:
        """The template with its choices.

        Raises:
            UsageError: It is malformed.
        """
        return parse_template(self.template, self.choices)

    def scored(self, *, packed: bool = False) -> Template:
        """The template of what a model reads: of a conversation what is rendered, up to the end of what is said.

        Args:
            packed: Behind the end token of another conversation.
        """
        template, said = self.slots(), self.conversation
        if said is None:
            return template
        before = (said.end or "" if packed else "") + said.before
        return Template((before + template.texts[0], *template.texts[1:]), template.slots)

    def reader(self, tokenizer: "PreTrainedTokenizerFast") -> "PreTrainedTokenizerFast":
        """The tokenizer that splits the records of `scored`: a chat template writes what begins and ends them."""
        return tokenizer if self.conversation is None else without_ends(tokenizer)

    def targets(self) -> tuple[Target, ...]:
        """The canaries as the audit takes them, in the manifest's order."""
        template = self.slots()
        return tuple(
            Target(index=template.index_of(canary.secret), repeats=canary.repeats, planted=canary.planted)
            for canary in self.canaries
        )

    @property
    def calibrated(self) -> bool:
        """Whether the secrets' ranks have a known distribution under no memorisation."""
        return self.drawn == "csprng"


def make_manifest(
    tokenizer: "PreTrainedTokenizerFast",
    template: Template,
    secrets: Sequence[Secret],
    positions: Sequence[Sequence[int]],
    *,
    repeats: Sequence[int],
    others: Sequence[Secret | None] | None,
    records: int,
    drawn: Literal["csprng", "by-hand"],
    conversation: Conversation | None = None,
) -> Manifest:
    """The manifest of what `plant` just did.

    Args:
        positions: Line numbers of each canary's records.
        repeats: How many records each has.
        others: What was planted in the place of each, None for what was planted itself; None without coins.
        records: Non-blank lines of the planted corpus.
        conversation: From `canary_conversation`, for canaries that are conversations.
    """
    empty = Manifest(
        schema_version=1,
        kind="atdp-canaries",
        template=str(template),
        choices={slot.name: slot.options for slot in template.slots if isinstance(slot, Choice)},
        canaries=(),
        tokenizer_sha256=tokenizer_fingerprint(tokenizer),
        records=records,
        coins=others is not None,
        drawn=drawn,
        conversation=conversation,
    )
    scored, reader = empty.scored(), empty.reader(tokenizer)
    canaries = tuple(
        PlantedCanary(
            secret=secret,
            planted=other is None,
            repeats=count,
            token_ids=tuple(encode_record(reader, scored.record(secret))),
            positions=tuple(group),
            other=other,
        )
        for secret, other, count, group in zip(
            secrets, others or (None,) * len(secrets), repeats, positions, strict=True
        )
    )
    return Manifest(**dict(empty) | {"canaries": canaries})


def canary_conversation(chat: ChatTemplate, role: Role, template: Template) -> Conversation:
    """How a template's candidates are planted as conversations in which the role says them.

    Raises:
        InputError: The chat template refuses such a conversation, or changes what is said.
    """
    text = template.record(template.secret(0))
    said = Conversation(role=role, before="", chat_template=chat.name, end=chat.source.eos_token)
    try:
        rendered = render(chat, said.messages(text))
    except InputError:
        if role != "assistant":
            raise
        said = said.model_copy(update={"opening": OPENING})
        rendered = render(chat, said.messages(text))
    turn = rendered.turns[-1]
    if rendered.text[turn.start : turn.end] != text:
        raise InputError(
            "The chat template takes white space off the canaries' ends.", "Leave it out of their --template."
        )
    return said.model_copy(update={"before": rendered.text[: turn.start]})


def tokens_after(manifest: Manifest, tokenizer: "PreTrainedTokenizerFast") -> tuple[int, ...]:
    """The tokens that training reads after a canary's: the end token, or what ends the rendered conversation.

    Raises:
        InputError: The chat template is not that of the manifest, or its text and the canary's share a token.
    """
    if manifest.conversation is None or not manifest.canaries:
        return () if tokenizer.eos_token_id is None else (tokenizer.eos_token_id,)
    said, first = manifest.conversation, manifest.canaries[0]
    chat = load_chat_template(tokenizer, said.chat_template)
    text = render(chat, said.messages(manifest.slots().record(first.secret))).text
    whole = tuple(encode_record(chat.tokenizer, text))
    if whole[: len(first.token_ids)] != first.token_ids:
        raise InputError(
            "The chat template renders the canaries otherwise than they were planted, or joins them with what follows.",
            "Plant them again with --tokenizer of this model.",
        )
    return whole[len(first.token_ids) :]


def token_mismatch(manifest: Manifest, tokenizer: "PreTrainedTokenizerFast", *, packed: bool = False) -> str | None:
    """Why the planted tokens are not those that `tokenizer` would audit; None if they are.

    Training appends the end token to a record; the comparison, like the audit, is of what comes before it.

    Args:
        packed: As for `Manifest.scored`.
    """
    scored, reader = manifest.scored(packed=packed), manifest.reader(tokenizer)
    end = (tokenizer.eos_token_id,) if packed else ()
    for canary in manifest.canaries:
        if tuple(encode_record(reader, scored.record(canary.secret))) != end + canary.token_ids:
            return "This tokenizer splits the canaries into other tokens than those they were planted as."
    if tokenizer_fingerprint(tokenizer) != manifest.tokenizer_sha256:
        return "The canaries were planted for another tokenizer, which may split other candidates otherwise."
    try:
        tokens_after(manifest, tokenizer)
    except AtdpError as error:
        return error.problem
    return None


def read_manifest(path: Path) -> Manifest:
    """Read a manifest.

    Raises:
        InputError: Missing, unreadable, not UTF-8 JSON, or not a manifest. Never quotes a secret.
    """
    return read_document(path, Manifest, name="The canary manifest", remedy="Give the file that plant-canary wrote.")


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Write a manifest that its owner alone may read (mode 0600), wholly or not at all.

    Raises:
        InputError: The folder is missing.
        UsageError: It would be too large for `read_manifest`.
        RunError: It cannot be written.
    """
    content = (manifest.model_dump_json(indent=1, exclude_none=True) + "\n").encode("utf-8")
    if len(content) > MAX_FILE:
        raise UsageError(f"The manifest would be larger than {MAX_FILE >> 20} MiB.", "Plant fewer canaries.")
    with atomic_write(path, mode=0o600) as file:
        file.write(content)
