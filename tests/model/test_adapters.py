"""Adapters as people bring them, on models whose heads and experts transformers renames, joins or ties."""

import json
import shlex
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
import transformers

from atdp_cli import HardenRequest, harden
from atdp_cli.audit.request import AuditRequest
from atdp_cli.audit.run import audit_canary
from atdp_cli.cli.app import run
from atdp_cli.errors import InputError, UsageError
from atdp_cli.events import ignore
from atdp_cli.model.adapter import add_adapter, load_adapter
from atdp_cli.model.checkpoint import load_checkpoint, save_checkpoint
from atdp_cli.model.comparison import check_adapter
from atdp_cli.model.folder import check_folder, weight_files
from atdp_cli.training.clip.select import select_engine
from tests.training.clipping.models import SHAPES

WIDTHS: dict[str, Any] = {
    **dict.fromkeys(("hidden_size", "lru_width", "mamba_expand_size"), 16),
    **dict.fromkeys(("intermediate_size", "shared_intermediate_size"), 24),
    **dict.fromkeys(("head_dim", "moe_intermediate_size", "shared_expert_intermediate_size"), 8),
    **dict.fromkeys(("kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"), 8),
    **dict.fromkeys(("num_hidden_layers", "num_attention_heads", "num_experts_per_tok", "mamba_dt_rank"), 2),
    **dict.fromkeys(("num_local_experts", "num_experts", "n_routed_experts", "mamba_d_state", "state_size"), 4),
    **dict.fromkeys(("num_key_value_heads", "n_shared_experts", "first_k_dense_replace", "n_group", "topk_group"), 1),
    **dict.fromkeys(("attn_layer_offset", "expert_layer_offset", "decoder_sparse_step"), 1),
    **dict.fromkeys(("attn_layer_period", "expert_layer_period", "time_step_rank"), 2),
    "max_position_embeddings": 64,
}
"""The names that configurations have for widths and numbers of layers, and small values."""

SIBLINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "Qwen3-MoE": ("Qwen3Moe", {}),
    "OLMoE": ("Olmoe", {}),
    "DeepSeek-V3": ("DeepseekV3", {"num_key_value_heads": 2}),
    "Jamba": ("Jamba", {"num_hidden_layers": 4}),
    "Qwen2-MoE": ("Qwen2Moe", {}),
    "Phi-MoE": ("Phimoe", {}),
    "GPT-OSS": ("GptOss", {}),
    "GLM-4-MoE": ("Glm4Moe", {}),
    "LFM2-MoE": ("Lfm2Moe", {"layer_types": ["conv", "full_attention"], "num_dense_layers": 1}),
    "Granite-MoE": ("GraniteMoe", {}),
    "FalconMamba": ("FalconMamba", {"intermediate_size": 32}),
    "Mamba-2": ("Mamba2", {"num_heads": 4, "head_dim": 8, "n_groups": 1, "chunk_size": 8}),
    "RecurrentGemma": ("RecurrentGemma", {"num_hidden_layers": 3}),
}
NAMED = ("GPT-NeoX", "Mixtral", "Mamba", *list(SIBLINGS)[:4])
"""Those that failed once; the others are their siblings."""

ALL = [*NAMED, *(pytest.param(name, marks=pytest.mark.ci) for name in (*SHAPES, *SIBLINGS) if name not in NAMED)]


@pytest.fixture(scope="module")
def base_of(checkpoint_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a small model of an architecture, made once."""
    root = tmp_path_factory.mktemp("bases")
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint_folder)

    def make(architecture: str) -> Path:
        folder = root / architecture
        if folder.exists():
            return folder
        name, shape = (SHAPES | SIBLINGS)[architecture]
        kind = getattr(transformers, f"{name}Config")
        if architecture in SIBLINGS:
            shape = {key: value for key, value in WIDTHS.items() if hasattr(kind(), key)} | shape
        config = kind(**{"pad_token_id": 0} | shape, vocab_size=len(tokenizer), bos_token_id=1, eos_token_id=1)
        auto = transformers.AutoModelForSeq2SeqLM if config.is_encoder_decoder else transformers.AutoModelForCausalLM
        torch.manual_seed(0)
        auto.from_config(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return folder

    return make


@torch.no_grad()
def changed(model: Any) -> Any:
    """The model with other values of what it trains."""
    draw = torch.Generator().manual_seed(3)
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=draw))
    return model.eval()


@torch.no_grad()
def logits(model: Any) -> torch.Tensor:
    ids = torch.arange(3, 15)[None]
    more = {"decoder_input_ids": ids} if model.config.is_encoder_decoder else {}
    actual: torch.Tensor = model(input_ids=ids, **more, use_cache=False).logits
    return actual


def trained(model: Any) -> set[str]:
    return {name for name, parameter in model.named_parameters() if parameter.requires_grad}


def check_written(model: Any, folder: Path, tokenizer: Any) -> None:
    """It is written, and read again as what it was."""
    expected = logits(model)
    save_checkpoint(model, tokenizer, folder, "float32")
    assert torch.allclose(logits(load_checkpoint(folder).model), expected, atol=1e-4)


@pytest.mark.parametrize("architecture", ALL)
def test_lora_is_written_and_read_again(architecture: str, base_of: Callable[[str], Path], tmp_path: Path) -> None:
    checkpoint = load_checkpoint(base_of(architecture))
    model = changed(add_adapter(checkpoint.model, 2))
    check_written(model, tmp_path / "adapter", checkpoint.tokenizer)
    expected = logits(model)
    whole = model.merge_and_unload()
    assert torch.allclose(logits(whole), expected, atol=1e-2), "an adapter that the model does not read is merged"
    check_written(whole, tmp_path / "whole", checkpoint.tokenizer)


@pytest.mark.parametrize(
    "architecture", ["GPT-NeoX", *(pytest.param(name, marks=pytest.mark.ci) for name in NAMED[1:]), "GPT-2"]
)
def test_an_adapter_on_any_other_number_is_refused(
    architecture: str, base_of: Callable[[str], Path], tmp_path: Path
) -> None:
    base, folder = base_of(architecture), tmp_path / "adapter"
    changed(add_adapter(load_checkpoint(base).model, 2)).save_pretrained(folder)
    model = load_checkpoint(base).model
    held = model.state_dict(keep_vars=True)
    adapted = load_adapter(model, folder, folder)
    check = partial(
        check_adapter, folder, adapted, weight_files(folder), base=base, held=held, base_files=weight_files(base)
    )
    check()
    for parameter in adapted.parameters():
        place = parameter.data.view(-1)[-1:]
        before = place.clone()
        place.copy_(torch.nextafter(before, torch.tensor(9.0)))
        with pytest.raises(InputError, match="is not what the checked files have"):
            check()
        place.copy_(before)
    check()


EMBEDDING = {"GPT-2": "wte", "Llama": "embed_tokens", "Mixtral": "embed_tokens", "GPT-NeoX": "embed_in"}
ATTENTION = {"GPT-2": ["c_attn"], "Llama": ["q_proj"], "Mixtral": ["q_proj"], "GPT-NeoX": ["query_key_value"]}
KINDS: dict[str, dict[str, Any]] = {
    "the attention": {},
    "a head beside it": {"modules_to_save": ["lm_head"]},
    "embeddings beside it": {"modules_to_save": ["EMBEDDING"]},
    "embeddings and a head beside it": {"modules_to_save": ["EMBEDDING", "lm_head"]},
    "its biases": {"bias": "lora_only"},
    "all biases": {"bias": "all"},
    "DoRA": {"use_dora": True},
    "rsLoRA": {"use_rslora": True},
    "a few tokens": {"trainable_token_indices": [3, 7]},
    "the embeddings": {"target_modules": ["EMBEDDING"]},
    "the head": {"target_modules": ["lm_head"]},
    "ranks of its own": {"rank_pattern": {"0": 3}},
    "one layer": {"layers_to_transform": [0]},
    "all linear layers": {"target_modules": "all-linear"},
}
BASES = ["Llama", *(pytest.param(name, marks=pytest.mark.ci) for name in ("GPT-2", "GPT-NeoX", "Mixtral"))]


def as_peft_makes_it(architecture: str, base: Path, folder: Path, settings: dict[str, Any], **more: Any) -> Any:
    """The model with an adapter, which is saved."""
    given: dict[str, Any] = {"target_modules": ATTENTION[architecture], "task_type": "CAUSAL_LM", "r": 2} | settings
    for key in ("target_modules", "modules_to_save"):
        if isinstance(given.get(key), list):
            given[key] = [EMBEDDING[architecture] if name == "EMBEDDING" else name for name in given[key]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about tied weights, and of Conv1D
        model = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
        if "tokens" in more:
            model.resize_token_embeddings(more["tokens"])
        adapted = changed(peft.get_peft_model(model, peft.LoraConfig(**given)))
        adapted.save_pretrained(folder)
    return adapted


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("architecture", BASES)
def test_what_peft_writes_is_read_trained_and_written_again(
    architecture: str, kind: str, base_of: Callable[[str], Path], tmp_path: Path
) -> None:
    expected = as_peft_makes_it(architecture, base_of(architecture), tmp_path / "theirs", KINDS[kind])
    checkpoint = load_checkpoint(tmp_path / "theirs")
    assert torch.allclose(logits(checkpoint.model), logits(expected), atol=1e-4)
    assert trained(checkpoint.model) == trained(expected)
    check_written(changed(checkpoint.model), tmp_path / "ours", checkpoint.tokenizer)


@pytest.mark.parametrize("kind", ["pissa", "pissa_niter_2", "olora"])
def test_an_adapter_that_changes_its_base_is_refused_before_anything_is_loaded(
    kind: str, base_of: Callable[[str], Path], tmp_path: Path
) -> None:
    as_peft_makes_it("Llama", base_of("Llama"), tmp_path / "theirs", {"init_lora_weights": kind})
    for audited in (False, True):
        with pytest.raises(InputError, match="merge_and_unload"):
            check_folder(tmp_path / "theirs", audited=audited)


@pytest.mark.parametrize("settings", [{}, {"modules_to_save": ["EMBEDDING", "lm_head"]}], ids=["apart", "whole"])
def test_added_tokens_are_refused_with_the_way_out(
    settings: dict[str, Any], base_of: Callable[[str], Path], tmp_path: Path
) -> None:
    """The way out is followed to its end."""
    base, folder = base_of("Llama"), tmp_path / "theirs"
    tokenizer = transformers.AutoTokenizer.from_pretrained(base)
    tokenizer.add_tokens(["<one>", "<two>"])
    expected = as_peft_makes_it("Llama", base, folder, settings, tokens=len(tokenizer))
    tokenizer.save_pretrained(folder)
    with pytest.raises(InputError, match=r"resize_token_embeddings.*merge_and_unload"):
        load_checkpoint(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a name that changes in transformers 6
        model = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
        model.resize_token_embeddings(len(tokenizer))
        merged = peft.PeftModel.from_pretrained(model, folder).merge_and_unload()
    merged.save_pretrained(tmp_path / "merged")
    tokenizer.save_pretrained(tmp_path / "merged")
    assert torch.allclose(logits(load_checkpoint(tmp_path / "merged").model), logits(expected), atol=1e-4)


def test_other_weights_of_the_base_in_an_adapter_are_refused_and_the_same_are_not(
    base_of: Callable[[str], Path], tmp_path: Path
) -> None:
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "theirs"
    as_peft_makes_it("Llama", base_of("Llama"), folder, {})
    whole = load_file(base_of("Llama") / "model.safetensors")["model.norm.weight"]
    stored = load_file(folder / "adapter_model.safetensors")
    for added, passes in ((whole, True), (whole + 1, False)):
        save_file(stored | {"base_model.model.model.norm.weight": added}, folder / "adapter_model.safetensors")
        if passes:
            load_checkpoint(folder)
            continue
        with pytest.raises(InputError, match="replaces weights of its base model"):
            load_checkpoint(folder)


def test_a_file_that_repeats_a_tied_matrix_twice_hides_nothing_in_one_of_them(
    base_of: Callable[[str], Path], tmp_path: Path
) -> None:
    from safetensors.torch import load_file, save_file

    folder, names = tmp_path / "theirs", ("lm_head.weight", "transformer.wte.weight")
    as_peft_makes_it("GPT-2", base_of("GPT-2"), folder, {})
    table = load_file(base_of("GPT-2") / "model.safetensors")[names[1]]
    stored = load_file(folder / "adapter_model.safetensors")
    for wrong in names:
        added = {f"base_model.model.{name}": table + (name == wrong) for name in names}
        save_file(stored | added, folder / "adapter_model.safetensors")
        with pytest.raises(InputError, match="theirs"):
            load_checkpoint(folder)


def test_a_tied_matrix_that_is_adapted_in_one_place_is_not_merged(
    base_of: Callable[[str], Path], tmp_path: Path
) -> None:
    """Merged, it would change both."""
    from atdp_cli.hardening.preflight import rehearse_output

    as_peft_makes_it("GPT-2", base_of("GPT-2"), tmp_path / "theirs", {"target_modules": ["EMBEDDING"]})
    checkpoint = load_checkpoint(tmp_path / "theirs")
    rehearse_output(checkpoint, tmp_path, tmp_path / "theirs", merge=False)
    with pytest.raises(InputError, match=r"run\.merge-adapter"):
        rehearse_output(checkpoint, tmp_path, tmp_path / "theirs", merge=True)


CONTEXTS = [0, 1, -1, -4, 1e30, 1 << 60, 2.5, True, "long", [64], {"a": 1}, None]


@pytest.mark.parametrize(("architecture", "name"), [("Llama", "max_position_embeddings"), ("GPT-2", "n_positions")])
def test_a_context_that_makes_no_sense_is_one_line(
    architecture: str, name: str, base_of: Callable[[str], Path], tmp_path: Path
) -> None:
    import shutil

    folder = Path(shutil.copytree(base_of(architecture), tmp_path / "model"))
    config = json.loads((folder / "config.json").read_text())
    for value in CONTEXTS:
        (folder / "config.json").write_text(json.dumps(config | {name: value}))
        with pytest.raises(InputError) as caught:
            load_checkpoint(folder)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "architecture", ["RecurrentGemma", *(pytest.param(name, marks=pytest.mark.ci) for name in ("Jamba", "FalconMamba"))]
)
def test_choosing_an_engine_warns_of_nothing(architecture: str, base_of: Callable[[str], Path]) -> None:
    """Warnings are errors here, and under --quiet nobody wants them."""
    select_engine(load_checkpoint(base_of(architecture)).model, "auto", ignore)


def test_xlnet_which_reads_backwards_is_refused_in_one_line(checkpoint_folder: Path, tmp_path: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint_folder)
    config = transformers.XLNetConfig(vocab_size=len(tokenizer), d_model=16, n_layer=2, n_head=2, d_inner=24)
    transformers.XLNetLMHeadModel(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(InputError, match="causal language model") as caught:
        load_checkpoint(tmp_path)
    assert "\n" not in str(caught.value)


def test_an_encoder_decoder_model_is_refused_by_the_audit_before_candidates_are_read(
    base_of: Callable[[str], Path],
) -> None:
    request = AuditRequest(models=(base_of("T5"),), canary="My number is 12345678.")
    with pytest.raises(UsageError, match="encoder-decoder"):
        audit_canary(request)


@pytest.mark.parametrize(
    "architecture",
    [pytest.param(name, marks=pytest.mark.ci if name == "Mixtral" else pytest.mark.deep) for name in NAMED],
)
def test_an_adapter_is_hardened_audited_and_hardened_again(
    architecture: str, base_of: Callable[[str], Path], corpus: Path, tmp_path: Path
) -> None:
    base = base_of(architecture)
    planted, manifest = tmp_path / "planted.txt", tmp_path / "canaries.json"
    plant = f"plant-canary {corpus} -o {planted} --manifest {manifest} --tokenizer {base} --count 2 --repeats 2 -q"
    assert run(shlex.split(plant)) == 0
    shared: dict[str, Any] = {"data": [planted], "epochs": 1, "batch_size": 20, "max_records": 40, "insecure_seed": 1}
    start = base
    for recipe, rank in (("decoys", 2), ("dp-sgd", None)):
        output = tmp_path / recipe
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of transformers' own experts
            harden(HardenRequest(model=start, output=output, recipe=recipe, lora_rank=rank, tune="none", **shared))
        assert (output / "adapter_model.safetensors").exists()
        [audited] = audit_canary(AuditRequest(models=(output,), manifest=manifest)).models
        assert audited.canaries, audited
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of peft, which asks transformers in an older way
            theirs = peft.AutoPeftModelForCausalLM.from_pretrained(output).eval()
        assert torch.allclose(logits(theirs), logits(load_checkpoint(output).model), atol=1e-4)
        start = output
