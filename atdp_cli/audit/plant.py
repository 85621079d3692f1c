"""`atdp plant-canary` as a function: draw canaries, plant them in a corpus, and say what an audit of them can show."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from atdp_cli.audit.canary import Secret, Template, choice_files, parse_template
from atdp_cli.audit.draw import draw_secrets, one_token_words, plant, toss_coins
from atdp_cli.audit.epsilon import HALF_AND_ROOT, NOTHING_REVEALED, plan_games
from atdp_cli.audit.hypothesis_tests import least_detectable, power, split_alpha
from atdp_cli.audit.manifest import (
    Conversation,
    Manifest,
    Said,
    canary_conversation,
    make_manifest,
    read_manifest,
    tokens_after,
    write_manifest,
)
from atdp_cli.audit.pool import sampled
from atdp_cli.audit.results import MEMORISED_BITS, MIN_POWER
from atdp_cli.audit.verdict import DEFAULT_LIMITS
from atdp_cli.corpus.record import read_records
from atdp_cli.errors import InputError, UsageError
from atdp_cli.events import Notify, RecordsRead, ignore
from atdp_cli.files.atomic_write import atomic_write, check_new
from atdp_cli.files.corpus_file import check_readable, check_regular, check_same_kind, kind_of, read_lines
from atdp_cli.model.chat import load_chat_template, without_ends
from atdp_cli.model.folder import check_folder

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


MAX_CHOICES = 100_000

Kind = Literal["secret", "unused-token", "high-perplexity"]
"""The kinds of text that fill the slots: a secret by the template alone, a word of the vocabulary that no record has,
or one that the model hardly expects there (Panda et al. 2025, "Privacy Auditing of Large Language Models")."""

TEMPLATES: dict[Kind, str] = {
    "secret": "My ID is {digits:6}",
    "unused-token": "My ID is {choice:unused-token}",
    "high-perplexity": "My ID is {choice:high-perplexity}",
}
"""The default template of each kind."""

WORDS_A_CANARY = 10
"""The fewest candidates for each canary; with fewer, too many canaries would share a word."""


@dataclass(frozen=True, kw_only=True)
class Canaries:
    """The canaries to plant.

    Attributes:
        others: What is planted in the place of each that its coin leaves out, None for one that is planted; None
            where all are, without coins. So every corpus has the same records but for these secrets.
        repeats: Records of each.
        said: In what conversations; None for lines of text.
        positions: Lines of the planted file for each; None to draw them.
    """

    template: Template
    secrets: tuple[Secret, ...]
    others: tuple[Secret | None, ...] | None
    repeats: tuple[int, ...]
    positions: tuple[tuple[int, ...], ...] | None
    drawn: Literal["csprng", "by-hand"]
    said: Said | None = None


def draw_canaries(
    template: str,
    *,
    count: int,
    repeats: int,
    in_out: bool,
    kind: Kind = "secret",
    corpus: Path | None = None,
    model: Path | None = None,
    said: Said | None = None,
) -> Canaries:
    """New canaries with secrets from the CSPRNG, and a coin each if `in_out`.

    Args:
        template: As `parse_template` reads it; the files of its {choice:FILE} slots are read here. For the other kinds
            than `secret` its one slot is {choice:KIND}.
        corpus, model: What words are chosen by; for those kinds alone.
        said: In what conversations they are planted; None for lines of text.

    Raises:
        UsageError: A number is out of range, or the template is none.
        InputError: A file of choices cannot be used, or there are too few words.
    """
    if kind == "secret" or corpus is None or model is None:
        choices = {name: _choices(Path(name)) for name in choice_files(template)}
    else:
        choices = {kind: _words(template, kind, count=count, corpus=corpus, model=model, said=said)}
    slots = parse_template(template, choices)
    secrets, others = draw_secrets(slots, count), None
    if in_out:
        drawn = zip(toss_coins(count), draw_secrets(slots, count), strict=True)
        others = tuple(None if heads else other for heads, other in drawn)
    return Canaries(
        template=slots,
        secrets=secrets,
        others=others,
        repeats=(repeats,) * count,
        positions=None,
        drawn="csprng",
        said=said,
    )


def known_canaries(path: Path, text_field: str = "text") -> Canaries:
    """The canaries of a manifest, at their own places.

    Args:
        text_field: Where the corpus has its conversations, if the canaries are some.

    Raises:
        InputError: It is missing or malformed.
    """
    manifest = read_manifest(path)
    said = manifest.conversation
    return Canaries(
        template=manifest.slots(),
        secrets=tuple(canary.secret for canary in manifest.canaries),
        others=tuple(canary.other for canary in manifest.canaries) if manifest.coins else None,
        repeats=tuple(canary.repeats for canary in manifest.canaries),
        positions=tuple(canary.positions for canary in manifest.canaries),
        drawn=manifest.drawn,
        said=None if said is None else Said(role=said.role, text_field=text_field, chat_template=said.chat_template),
    )


@dataclass(frozen=True, kw_only=True)
class Reach:
    """The most that an audit of canaries can show, at the default alpha and by log p alone.

    Attributes:
        detectable: The smallest mean exposure that is found with probability `MIN_POWER`, bits, were all candidates
            of one token length; None where none is found so often, or the secrets were not drawn at random.
        decides: Whether `MEMORISED_BITS` are found so often: without that an audit of them is inconclusive.
        rank: The last rank by log p at which one canary fails a model by itself; 0 where not even the first does.
        pool: How many candidates a rank is among.
        epsilon: The largest ε that is proved if all guesses are right, by game, for a claim with δ = 0.
        nodes: What ranking among all candidates costs a model, in positions of forward passes, where a tokenizer that
            gives every character a token of its own makes that expensive; None elsewhere.
    """

    detectable: float | None
    decides: bool
    rank: int
    pool: int
    epsilon: dict[str, float]
    nodes: int | None


def reach_of(made: Manifest, tokenizer: Path) -> Reach:
    """Compute what an audit of these canaries can show, and its cost, before any model is trained."""
    template, targets = made.slots(), made.targets()
    nodes = _dear_nodes(made, tokenizer)
    if not made.calibrated:
        return Reach(detectable=None, decides=False, rank=0, pool=template.pool, epsilon={}, nodes=nodes)
    plan = plan_games(
        targets,
        pool=template.pool,
        coins=made.coins,
        ranked=not sampled(template),
        games=HALF_AND_ROOT,
        limits=DEFAULT_LIMITS,
        scores=1,
        claim=NOTHING_REVEALED,
    )
    planted = sum(target.planted for target in targets)
    sizes = (template.pool,) * planted
    # An audit that has no claim of a ledger to test leaves nothing of alpha to bounds.
    most = split_alpha(DEFAULT_LIMITS.alpha, scores=1, bounds=0, canaries=planted).test
    return Reach(
        detectable=least_detectable(sizes, plan.levels.test, least_power=MIN_POWER) if planted else None,
        decides=bool(planted) and power(sizes, most, mean_exposure=MEMORISED_BITS) >= MIN_POWER,
        rank=int(most * template.pool / (2 * planted)) if planted else 0,
        pool=template.pool,
        epsilon={game.method: game.attainable for game in plan.games},
        nodes=nodes,
    )


def _dear_nodes(made: Manifest, tokenizer: Path) -> int | None:
    from atdp_cli.audit.product_pool import product_pool  # loads torch
    from atdp_cli.audit.rank import CHEAP_NODES
    from atdp_cli.model.checkpoint import load_tokenizer

    template = made.scored()
    if sampled(template) or template.pool <= CHEAP_NODES:
        return None
    product = product_pool(made.reader(load_tokenizer(tokenizer)), template)
    return None if product is None or sum(product.levels) <= CHEAP_NODES else sum(product.levels)


def plant_canaries(
    corpus: Path,
    output: Path,
    manifest: Path,
    canaries: Canaries,
    *,
    tokenizer: Path,
    force: bool,
    notify: Notify = ignore,
) -> Manifest:
    """Plant canaries in a corpus of lines or of conversations and write the manifest.

    Args:
        notify: Hears how many records there are, once nothing speaks against planting, and that all are done.

    Raises:
        UsageError: A file would be overwritten, or a number is out of range.
        InputError: The corpus or the tokenizer cannot be used.
    """
    for path in (output, manifest):
        check_new(path, force=force)
    check_same_kind(corpus, output)
    check_folder(tokenizer)
    lines, endings = _read_lines(corpus, canaries.said)
    others = canaries.others or (None,) * len(canaries.secrets)
    from atdp_cli.model.checkpoint import load_tokenizer  # loads torch

    reader, said = load_tokenizer(tokenizer), canaries.said
    conversation = None if said is None else _conversation(reader, said, canaries.template)
    planted, places = plant(
        lines,
        canaries.template,
        [other or secret for secret, other in zip(canaries.secrets, others, strict=True)],
        canaries.repeats,
        positions=canaries.positions,
        written=None if said is None or conversation is None else said.written(conversation, lines),
    )
    records = sum(1 for line in planted if line.strip())
    notify(RecordsRead(task="plant", done=0, total=records))
    made = make_manifest(
        reader,
        canaries.template,
        canaries.secrets,
        places,
        repeats=canaries.repeats,
        others=canaries.others,
        records=records,
        drawn=canaries.drawn,
        conversation=conversation,
    )
    if said is not None:
        tokens_after(made, reader)
    with atomic_write(output, replace=force) as stream:
        stream.write(_joined(planted, places, endings).encode("utf-8"))
        # Before the corpus has its name: one whose secrets are lost would be worth nothing.
        write_manifest(manifest, made)
    notify(RecordsRead(task="plant", done=records, total=records))
    return made


def _conversation(tokenizer: "PreTrainedTokenizerFast", said: Said, template: Template) -> Conversation:
    return canary_conversation(load_chat_template(tokenizer, said.chat_template), said.role, template)


def _words(template: str, kind: Kind, *, count: int, corpus: Path, model: Path, said: Said | None) -> tuple[str, ...]:
    """The candidates of a kind that are one token each in the template's slot, in the vocabulary's order."""
    before, slot, after = template.partition(f"{{choice:{kind}}}")
    if not slot or choice_files(before + after):
        raise UsageError(
            f"With --kind {kind} the template's one slot is {{choice:{kind}}}.",
            f'Write it like "{TEMPLATES[kind]}".',
        )
    from atdp_cli.model.checkpoint import load_tokenizer  # loads torch
    from atdp_cli.model.windows import encode_record

    check_folder(model)
    tokenizer = load_tokenizer(model)
    if said is not None:
        slots = parse_template(template, {kind: ("a", "b")})
        before = _conversation(tokenizer, said, slots).before + before
        tokenizer = without_ends(tokenizer)
    first, of_token = one_token_words(tokenizer, before, after)
    if kind == "unused-token":
        used = {token for text in _texts(corpus, said) for token in encode_record(tokenizer, text)}
        tokens = [token for token in of_token if token not in used]
    else:
        tokens = _least_expected(model, first, tuple(of_token))[: len(of_token) // 2]
    if len(tokens) < WORDS_A_CANARY * count:
        raise InputError(
            f"There are {len(tokens):,} words of kind {kind} in this vocabulary, too few for {count:,} canaries.",
            f"Plant {len(tokens) // WORDS_A_CANARY:,} at most, or another --kind.",
        )
    return tuple(of_token[token] for token in sorted(tokens))


def _texts(corpus: Path, said: Said | None) -> Iterable[str]:
    if said is None:
        return _read_lines(corpus, said)[0]
    records = read_records(corpus, text_field=said.text_field)
    return (record.text[turn.start : turn.end] for record in records for turn in record.turns)


def _least_expected(model: Path, first: tuple[int, ...], tokens: tuple[int, ...]) -> list[int]:
    """The tokens that the model finds least likely after these, the least likely first."""
    import torch

    from atdp_cli.model.checkpoint import load_checkpoint
    from atdp_cli.model.forward import Batch, logits_of

    checkpoint = load_checkpoint(model)
    if not first or checkpoint.model.config.is_encoder_decoder:
        raise UsageError(
            "--kind high-perplexity asks a decoder what follows the text before the slot.",
            "Put text before the slot, or use --kind unused-token.",
        )
    with torch.inference_mode():
        logits = logits_of(checkpoint.model, Batch(torch.tensor([first]), None))[0, -1, list(tokens)]
    return [tokens[place] for place in logits.argsort(stable=True).tolist()]


def _choices(path: Path) -> tuple[str, ...]:
    """The non-blank lines of a file."""
    check_regular(path)
    choices = tuple(line for _, line, _ in read_lines(path) if line.strip())
    if not choices or len(choices) > MAX_CHOICES or len(set(choices)) != len(choices):
        problem = "holds a line twice" if 1 <= len(choices) <= MAX_CHOICES else f"has {len(choices):,} lines"
        raise InputError(
            f"The file of choices {path} {problem}.", f"Give 1 to {MAX_CHOICES:,} choices, one a line, each once."
        )
    return choices


def _read_lines(corpus: Path, said: Said | None) -> tuple[list[str], list[str]]:
    """The lines of a corpus and their endings; the last one gets an ending if it has none."""
    if said is not None and "+" in said.text_field:
        raise UsageError(
            f"--text-field {said.text_field} names two fields, and --role plants a list of messages.",
            "Keep the conversations in one field, such as messages.",
        )
    if kind_of(corpus) != ("text" if said is None else "jsonl"):
        raise UsageError(
            f"{corpus} is not plain text." if said is None else f"{corpus} is not JSON Lines.",
            "Canaries are planted in .txt corpora, one record a line, and with --role in conversations (.jsonl).",
        )
    check_readable(corpus)
    if said is not None and not all(record.turns for record in read_records(corpus, text_field=said.text_field)):
        raise UsageError(
            f"{corpus} holds texts in the field {said.text_field}, and --role plants conversations.",
            "Name the field of the messages with --text-field.",
        )
    lines, endings = [], []
    for _, line, ending in read_lines(corpus):
        lines.append(line)
        endings.append(ending or "\n")
    return lines, endings


def _joined(planted: Sequence[str], positions: Sequence[Sequence[int]], endings: Sequence[str]) -> str:
    """Join the planted lines: the corpus' own keep their endings, the canaries' get the first of them."""
    ours = {line for group in positions for line in group}
    remaining = iter(endings)
    return "".join(
        line + (endings[0] if number in ours else next(remaining)) for number, line in enumerate(planted, start=1)
    )
