"""Whether canaries reach the loss of real trainers, and the ways in which they do not, each told by its name."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import torch

from atdp_cli.errors import InputError, UsageError
from atdp_cli.integrations.transformers import CanaryReach, Unreached, verify_canaries
from atdp_cli.model.checkpoint import Checkpoint
from tests.integrations.conftest import CHATML, REPEATS, SECRETS, Planted

Sft = Callable[..., Any]

ADAPTED = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
"""TRL asks a model with an adapter by a name that transformers warns of."""


def texts(lines: list[str] | tuple[str, ...]) -> list[dict[str, Any]]:
    return [{"text": line} for line in lines]


def chats(lines: list[str] | tuple[str, ...], role: str = "user") -> list[dict[str, Any]]:
    """Each line as a message, and the same answer to all."""
    return [
        {"messages": [{"role": role, "content": line}, {"role": "assistant", "content": "please wait"}]}
        for line in lines
    ]


def reasons(results: tuple[CanaryReach, ...]) -> list[Unreached | None]:
    return [result.reason for result in results]


def verified(trainer: Any, planted: Planted, **more: Any) -> tuple[CanaryReach, ...]:
    return verify_canaries(trainer.get_train_dataloader(), planted.manifest, trainer.processing_class, **more)


def test_every_record_of_every_canary_is_found_in_plain_text(sft: Sft, planted: Planted) -> None:
    trainer = sft(texts(planted.lines))
    before = torch.get_rng_state()
    results = verified(trainer, planted, model=trainer.model)
    assert torch.equal(before, torch.get_rng_state())
    assert results == tuple(
        CanaryReach(number=number, planted=REPEATS, trained=REPEATS, alone=REPEATS, masked=0, reason=None)
        for number in range(SECRETS)
    )
    assert all(parameter.grad is None for parameter in trainer.model.parameters())
    assert not any(digits in repr(results) for canary in planted.manifest.canaries for digits in canary.secret)


@pytest.mark.parametrize("strategy", ["bfd", "bfd_split"])
def test_packing_that_keeps_records_whole_loses_none(sft: Sft, planted: Planted, strategy: str) -> None:
    """Without FlashAttention TRL warns that packed records see each other; that they are in the loss stays true."""
    trainer = sft(texts(planted.lines), packing=True, packing_strategy=strategy)
    results = verified(trainer, planted)
    assert all(result.reached for result in results)
    assert {result.alone for result in results} == {REPEATS}, "positions begin again at each record"


def test_packed_across(sft: Sft, planted: Planted) -> None:
    """Wrapped rows of 9 tokens: no record of 8 tokens and an end token stays whole but by chance."""
    trainer = sft(texts(planted.lines), packing=True, packing_strategy="wrapped", max_length=9)
    results = verified(trainer, planted)
    assert Unreached.PACKED_ACROSS in reasons(results)
    assert set(reasons(results)) <= {None, Unreached.PACKED_ACROSS}
    assert all(result.trained < REPEATS for result in results if not result.reached)


def test_truncated(sft: Sft, planted: Planted) -> None:
    whole = min(len(canary.token_ids) for canary in planted.manifest.canaries)
    assert (
        reasons(verified(sft(texts(planted.lines), max_length=whole - 2), planted)) == [Unreached.TRUNCATED] * SECRETS
    )


def test_truncated_before_the_secret_and_from_the_left(sft: Sft, planted: Planted, loaded: Checkpoint) -> None:
    early = sft(texts(planted.lines), max_length=3)
    assert reasons(verified(early, planted)) == [Unreached.TRUNCATED] * SECRETS
    rows = [list(canary.token_ids[3:]) for canary in planted.manifest.canaries] * REPEATS
    late = verify_canaries(list(batches(rows, rows)), planted.manifest, loaded.tokenizer)
    assert reasons(late) == [Unreached.TRUNCATED] * SECRETS


def test_masked_by_an_assistant_only_loss(sft: Sft, planted: Planted) -> None:
    """The canaries are the user's, and the loss counts what the assistant says."""
    template = (
        CHATML.replace("{{ m.content }}", "{% generation %}{{ m.content }}{% endgeneration %}")
        .replace(
            "{% for m in messages %}",
            "{% for m in messages %}{% if m.role == 'user' %}<user> {{ m.content }} <end>\n{% else %}",
        )
        .replace("{% endfor %}", "{% endif %}{% endfor %}")
    )
    trainer = sft(chats(planted.lines), template=template, assistant_only_loss=True)
    results = verified(trainer, planted)
    assert reasons(results) == [Unreached.MASKED] * SECRETS
    assert {(result.trained, result.masked) for result in results} == {(0, REPEATS)}


def test_masked_as_a_prompt(sft: Sft, planted: Planted) -> None:
    rows = [{"prompt": line, "completion": " please wait"} for line in planted.lines]
    assert reasons(verified(sft(rows), planted)) == [Unreached.MASKED] * SECRETS


def test_in_a_chat_a_canary_is_found_behind_its_template(sft: Sft, planted: Planted) -> None:
    """The audit scores it at the beginning of a text, so that is said."""
    results = verified(sft(chats(planted.lines), template=CHATML), planted)
    assert all(result.reached for result in results)
    assert {(result.trained, result.alone) for result in results} == {(REPEATS, 0)}


def test_template_dropped(sft: Sft, planted: Planted) -> None:
    """A template that knows two roles leaves out what a third one says."""
    template = CHATML.replace("{% for m in messages %}", "{% for m in messages if m.role != 'system' %}")
    rows = chats(planted.lines, role="system")
    assert (
        reasons(verified(sft(rows, template=template), planted, examples=rows))
        == [Unreached.TEMPLATE_DROPPED] * SECRETS
    )


def test_the_same_text_as_other_tokens(planted: Planted, loaded: Checkpoint) -> None:
    """As a tokenizer with dropout, or a template that joins words to a message, may split it: here by characters."""
    rows = [
        [token for character in record for token in loaded.tokenizer(character)["input_ids"]]
        for record in planted.records
    ] * REPEATS
    results = verify_canaries(list(batches(rows, rows)), planted.manifest, loaded.tokenizer)
    merged = [
        len(row) + 1 > len(canary.token_ids) for row, canary in zip(rows, planted.manifest.canaries, strict=False)
    ]
    assert any(merged)
    assert [result.reason is Unreached.OTHER_TOKENS for result in results] == merged


def test_deduplicated(sft: Sft, planted: Planted) -> None:
    once = list(dict.fromkeys(planted.lines))
    for examples in (None, once):
        results = verified(sft(texts(once)), planted, examples=examples)
        assert {(result.reason, result.trained) for result in results} == {(Unreached.DEDUPLICATED, 1)}


def test_held_out(sft: Sft, planted: Planted) -> None:
    """Two canaries are in the other split; without the examples nobody can say where they went."""
    kept = [line for line in planted.lines if line not in planted.records[:2]]
    trainer = sft(texts(kept))
    lost, rest = [Unreached.HELD_OUT] * 2, [None] * (SECRETS - 2)
    assert reasons(verified(trainer, planted, examples=kept)) == [*lost, *rest]
    assert reasons(verified(trainer, planted)) == [Unreached.ABSENT] * 2 + rest


def test_what_the_examples_hold_and_no_batch_is_left_out(sft: Sft, planted: Planted) -> None:
    """The explanation asks for no examples once they are given, and a whole DatasetDict is none."""
    from datasets import Dataset, DatasetDict

    trainer = sft(texts([line for line in planted.lines if line not in planted.records[:2]]))
    rows = Dataset.from_list(texts(planted.lines))
    for examples in (rows, list(planted.lines)):
        results = verified(trainer, planted, examples=examples)
        assert reasons(results) == [Unreached.LEFT_OUT] * 2 + [None] * (SECRETS - 2)
        assert "Give the examples" not in results[0].explanation
    for wrong in (DatasetDict({"train": rows}), {"text": list(planted.lines)}, planted.lines[0]):
        with pytest.raises(UsageError, match="split"):
            verified(trainer, planted, examples=wrong)


def test_a_canary_that_its_coin_left_out_is_not_to_be_read(sft: Sft, planted: Planted) -> None:
    out = planted.manifest.canaries[0].model_copy(update={"planted": False, "positions": ()})
    manifest = planted.manifest.model_copy(update={"coins": True, "canaries": (out, *planted.manifest.canaries[1:])})
    trainer = sft(texts(planted.lines))
    results = verify_canaries(trainer.get_train_dataloader(), manifest, trainer.processing_class)
    assert reasons(results) == [Unreached.NOT_PLANTED] + [None] * (SECRETS - 1)
    kept = sft(texts([line for line in planted.lines if line != planted.records[0]]))
    results = verify_canaries(kept.get_train_dataloader(), manifest, kept.processing_class)
    assert reasons(results) == [None] * SECRETS


@ADAPTED
def test_an_adapter_gets_a_gradient_unless_it_is_frozen(sft: Sft, planted: Planted) -> None:
    from peft import LoraConfig

    lora = LoraConfig(r=2, target_modules=["c_attn"], fan_in_fan_out=True, task_type="CAUSAL_LM")
    trainer = sft(texts(planted.lines), peft_config=lora)
    modes = {name: module.training for name, module in trainer.model.named_modules()}
    assert all(result.reached for result in verified(trainer, planted, model=trainer.model))
    assert modes == {name: module.training for name, module in trainer.model.named_modules()}
    for parameter in trainer.model.parameters():
        parameter.requires_grad = False
    assert reasons(verified(trainer, planted, model=trainer.model)) == [Unreached.NO_GRADIENT] * SECRETS


@ADAPTED
def test_an_adapter_that_the_loss_does_not_depend_on_gets_none(sft: Sft, planted: Planted) -> None:
    """Both of its factors are 0, so that neither has a gradient."""
    from peft import LoraConfig

    lora = LoraConfig(r=2, target_modules=["c_attn"], fan_in_fan_out=True, task_type="CAUSAL_LM")
    trainer = sft(texts(planted.lines), peft_config=lora)
    with torch.no_grad():
        for parameter in trainer.model.parameters():
            if parameter.requires_grad:
                parameter.zero_()
    assert reasons(verified(trainer, planted, model=trainer.model)) == [Unreached.NO_GRADIENT] * SECRETS


def batches(rows: list[list[int]], labels: list[list[int]]) -> Iterator[Mapping[str, Any]]:
    """Rows of one length, each a batch."""
    for ids, of_row in zip(rows, labels, strict=True):
        yield {"input_ids": torch.tensor([ids]), "labels": torch.tensor([of_row])}


def test_one_token_of_the_secret_out_of_the_loss_is_enough(planted: Planted, loaded: Checkpoint) -> None:
    """The words around a secret may be masked: what is guessed is the secret."""
    rows = [list(canary.token_ids) for canary in planted.manifest.canaries] * REPEATS
    words = [[-100] * (len(ids) - 1) + ids[-1:] for ids in rows]
    assert set(reasons(verify_canaries(list(batches(rows, words)), planted.manifest, loaded.tokenizer))) <= {
        None,
        Unreached.MASKED,
    }
    ends = [[*ids[:-1], -100] for ids in rows]
    results = verify_canaries(list(batches(rows, ends)), planted.manifest, loaded.tokenizer)
    assert reasons(results) == [Unreached.MASKED] * SECRETS


def test_batches_without_labels_and_another_tokenizer_are_refused(planted: Planted, loaded: Checkpoint) -> None:
    with pytest.raises(InputError, match="have no input_ids with labels"):
        verify_canaries([{"input_ids": torch.ones(1, 4, dtype=torch.long)}], planted.manifest, loaded.tokenizer)
    other = planted.manifest.model_copy(update={"tokenizer_sha256": "0" * 64})
    with pytest.raises(InputError, match="another tokenizer"):
        verify_canaries([], other, loaded.tokenizer)
