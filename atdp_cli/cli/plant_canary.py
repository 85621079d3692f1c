"""`atdp plant-canary`: put known secrets into a corpus before fine-tuning, so that an audit can look for them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from atdp_cli.cli.console import progress, stderr_console, write_json
from atdp_cli.cli.help import OutputOptions
from atdp_cli.cli.json_lines import ProgressOption
from atdp_cli.detection.options import ChatTemplateOptions, ReplacingOptions, TextFieldOptions
from atdp_cli.errors import UsageError
from atdp_cli.files.atomic_write import check_apart
from atdp_cli.settings import OUTPUT, Option, Options, named_paths

if TYPE_CHECKING:
    from atdp_cli.audit.plant import Canaries, Reach


class PlantOptions(Options):
    """The canaries to plant, and the files to write."""

    output: Annotated[Path, Option(OUTPUT, flags=("--output", "-o"), writes=True)]
    """The planted corpus."""

    manifest: Annotated[Path, Option(OUTPUT, writes=True)]
    """Where to write the secrets. Keep this file private."""

    tokenizer: Annotated[Path, Option()]
    """Folder of the model that will be fine-tuned."""

    count: Annotated[int, Option()] = 10
    """How many canaries."""

    repeats: Annotated[int, Option()] = 10
    """How many records carry each."""

    kind: Annotated[Literal["secret", "unused-token", "high-perplexity"], Option(metavar="KIND")] = "secret"
    """secret: by the template. unused-token: a word of the vocabulary that no record has. high-perplexity: one that
    the model hardly expects there. The last two bound ε more sharply, and stand for no secret of people."""

    template: Annotated[str | None, Option(shown="My ID is {digits:6}")] = None
    """A record with slots: {digits:6}, {hex:4}, {letters:5}, or {choice:FILE} for a line of a file. With another
    --kind its one slot is {choice:KIND}."""

    in_out: Annotated[bool, Option()] = False
    """Toss a fair coin for each canary and plant only those that it takes: the audit can then bound ε from below, and
    try membership. With --kind unused-token in any case."""

    role: Annotated[Literal["user", "assistant", "system"] | None, Option(metavar="ROLE")] = None
    """Plant conversations in which this role says the canary, and nothing else is said: into a corpus of conversations
    (.jsonl, with --text-field messages). The audit renders them by the chat template."""

    again: Annotated[Path | None, Option(flags=("--from",))] = None
    """Plant the canaries of this manifest again, at their own places."""


def plant_canary_command(
    corpus: Annotated[
        Path,
        typer.Argument(metavar="CORPUS", help="Plain text, one record a line; with --role conversations (.jsonl)."),
    ],
    options: PlantOptions,
    reading: TextFieldOptions,
    chat: ChatTemplateOptions,
    replacing: ReplacingOptions,
    printing: OutputOptions,
) -> None:
    """Plant canaries: secrets drawn at random, each in records of its own, listed in a manifest."""
    from atdp_cli.audit.canary import choice_files
    from atdp_cli.audit.plant import plant_canaries, reach_of

    read, written = named_paths(options)
    choices = () if options.again is not None else map(Path, choice_files(options.template or ""))
    check_apart((corpus, *read, *choices), written)
    canaries = _canaries(corpus, options, reading, chat)
    output, manifest = options.output, options.manifest
    console = stderr_console(quiet=printing.quiet)
    with progress(console, ProgressOption.AUTO) as notify:
        made = plant_canaries(
            corpus, output, manifest, canaries, tokenizer=options.tokenizer, force=replacing.force, notify=notify
        )
        planted = sum(canary.repeats for canary in made.canaries if canary.planted)
        reach = reach_of(made, options.tokenizer)
    if printing.as_json:
        write_json(
            {
                "schema_version": 1,
                "output": str(output),
                "manifest": str(manifest),
                "canaries": len(made.canaries),
                "planted": planted,
                "records": made.records,
                "detectable": reach.detectable,
                "decides": reach.decides,
                "rank": reach.rank,
                "pool": reach.pool,
                "provable_epsilon": reach.epsilon,
                "audit_nodes": reach.nodes,
            }
        )
    console.print(
        f"Canaries: {len(made.canaries)}, in {planted} of {made.records:,} records. Fine-tune on {output}, "
        f"then: atdp audit-canary MODEL --manifest {manifest}",
        soft_wrap=True,
    )
    if said := _reach(reach, calibrated=made.calibrated):
        console.print(said)
    if reach.nodes is not None:
        console.print(
            "This tokenizer gives each character of a secret a token of its own: to rank among all candidates, an "
            f"audit scores {reach.nodes:,} positions a model. A gate draws a sample (run.ranking); a slot that is one "
            "character shorter takes a tenth or less."
        )


def _canaries(corpus: Path, options: PlantOptions, reading: TextFieldOptions, chat: ChatTemplateOptions) -> "Canaries":
    """New canaries, or those of another manifest.

    Raises:
        UsageError: Options do not go together.
        InputError: A file cannot be used.
    """
    from atdp_cli.audit.manifest import Said
    from atdp_cli.audit.plant import TEMPLATES, draw_canaries, known_canaries

    if options.again is not None:
        return known_canaries(options.again, reading.text_field)
    if options.role is None and (chat.chat_template or reading.text_field != "text"):
        raise UsageError(
            "--text-field and run.chat-template are about conversations.", "Add --role, or leave them out."
        )
    conversation = None
    if options.role is not None:
        conversation = Said(role=options.role, text_field=reading.text_field, chat_template=chat.chat_template)
    return draw_canaries(
        options.template or TEMPLATES[options.kind],
        count=options.count,
        repeats=options.repeats,
        in_out=options.in_out or options.kind == "unused-token",
        kind=options.kind,
        corpus=corpus,
        model=options.tokenizer,
        said=conversation,
    )


def _reach(reach: "Reach", *, calibrated: bool) -> str:
    """The most that the canaries can show, in a sentence; empty if that is not known."""
    from atdp_cli.audit.results import MEMORISED_BITS

    bits = reach.detectable
    power = "" if bits is None else f"find a mean exposure of {bits:.1f} bits four times in five"
    by_game = ", ".join(f"{epsilon:.2f} by {method}" for method, epsilon in reach.epsilon.items() if epsilon > 0)
    proved = f"prove ε ≥ {by_game} at most" if by_game else ""
    can = " and ".join(part for part in (power, proved) if part)
    alone = f"up to rank {reach.rank:,} of {reach.pool:,}" if reach.rank else "at no rank"
    sentences = [f"At --alpha 0.01 they can {can}. One alone fails a model {alone}."] if can else []
    if calibrated and not reach.decides:
        sentences.append(
            f"Every audit of them will be INCONCLUSIVE: it has to find a mean exposure of {MEMORISED_BITS:g} bits four "
            "times in five. Plant more of them, or longer ones."
        )
    return " ".join(sentences)
