"""How a repository is stored whose own recipe is not in the catalog."""

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.names.facts import facts_as_named
from service.catalog.snapshot import Snapshot
from service.engine import GIB, Layout, StatedSettings, plan_replica, rank_weights
from service.engine.engines.device import device_of
from service.engine.facts import Checkpoint
from service.engine.memory.plan import model_weights

MODULES = [f"model.layers.3.{name}" for name in ("linear_attn.out_proj", "self_attn.q_proj", "mlp.down_proj")]


def checkpoint_of(catalog: Snapshot, name: str) -> Checkpoint:
    (checkpoint,) = facts_as_named(catalog, catalog.called_models.read(name)).checkpoints
    return checkpoint


def kept(checkpoint: Checkpoint) -> list[bool]:
    return [checkpoint.quantization.of(module).keeps(module) for module in MODULES]


@pytest.mark.parametrize(
    "name", ["Qwen/Qwen3.5-27B-GPTQ-Int4", "someone/Qwen3.6-27B-GPTQ-Int4", "qwen3.8 27b gptq int8"]
)
def test_gptq_of_a_model_with_states_leaves_its_attention_whole(catalog: Snapshot, name: str) -> None:
    # config.json of Qwen/Qwen3.5-27B-GPTQ-Int4: "-:.*attn.*", "-:.*shared_expert.*", "-:.*mtp.*", "-:.*visual.*"
    checkpoint = checkpoint_of(catalog, name)

    assert (checkpoint.quantization.method, checkpoint.is_assumed) == ("gptq", True)
    assert kept(checkpoint) == [True, True, False]


def test_gptq_of_other_numbers_is_stored_as_they_are(catalog: Snapshot) -> None:
    # sudo-0x2a/Qwen3.6-27B-NVFP4-GPTQ (huggingface.co)
    assert checkpoint_of(catalog, "sudo-0x2a/Qwen3.6-27B-NVFP4-GPTQ").quantization.scheme == "nvfp4"


@pytest.mark.parametrize("name", ["someone/Qwen3.6-27B-AWQ", "someone/Qwen3-32B-GPTQ-Int4"])
def test_other_recipes_quantize_every_layer_and_are_said_to_be_assumed(catalog: Snapshot, name: str) -> None:
    checkpoint = checkpoint_of(catalog, name)

    assert checkpoint.is_assumed
    assert not any(kept(checkpoint))


@pytest.mark.parametrize("name", ["nvidia/Qwen3.6-27B-NVFP4", "Qwen/Qwen3-32B-AWQ"])
def test_a_stored_recipe_is_not_assumed(catalog: Snapshot, name: str) -> None:
    assert not checkpoint_of(catalog, name).is_assumed


@pytest.mark.parametrize(("gpus", "printed_gib"), [(1, 24.57), (2, 12.02)])
def test_fp4_of_a_model_with_delta_nets_takes_what_it_was_published_to_take(
    catalog: Snapshot, gpus: int, printed_gib: float
) -> None:
    # vllm-project/recipes, models/Qwen/Qwen3.8-27B.yaml: 26,381,249,312 bytes in all, of which the draft layer's (0.79
    # GiB in 16 bits) are not loaded without drafts; 12.02 GiB on each of two RTX 5090.
    model = facts_as_named(catalog, catalog.called_models.read("Inferact/Qwen3.8-27B-NVFP4"))
    # Of files, and of segments that expand, the allocator leaves nothing over.
    layout, device = Layout(tensor_parallel_size=gpus), device_of(catalog.gpu("rtx-5090"), rules_for("vllm", "0.26"))
    loaded_gib = printed_gib - (0.79 if gpus == 1 else 0)

    held = rank_weights(
        model.architecture, layout=layout, quantization=model.checkpoints[0].quantization, device=device
    )

    assert (held.loaded_bytes - held.by_component["allocator_rests"]) / GIB == pytest.approx(loaded_gib, rel=0.01)


def test_fp4_of_a_model_with_delta_nets_keeps_what_they_read_with(catalog: Snapshot) -> None:
    stored = checkpoint_of(catalog, "someone/Qwen3.5-27B-NVFP4").quantization
    names = ("linear_attn.in_proj_qkv", "linear_attn.in_proj_z", "linear_attn.out_proj", "mlp.down_proj")

    assert [stored.of(f"model.layers.0.{name}").keeps(f"model.layers.0.{name}") for name in names] == [
        True,
        True,
        False,
        False,
    ]


def test_nemotron_3_ultra_takes_what_its_publisher_measured_of_the_mixed_checkpoint(catalog: Snapshot) -> None:
    # 331 GB, of 1.1 TB in 16 bits: docs.nvidia.com/nemotron/nightly/nemotron/ultra3/quantization.html; with the draft
    # layer, which is not loaded, it is 352.3 GB
    model = facts_as_named(catalog, catalog.called_models.read("nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-NVFP4"))

    plan = plan_replica(
        model, catalog.gpu("b300"), Layout(tensor_parallel_size=4), StatedSettings(), rules_for("vllm", None)
    )

    assert model_weights(plan).weight_bytes == pytest.approx(331e9, rel=0.01)


@pytest.mark.parametrize("stored", ["MXFP4", "NVFP4"])
def test_four_bits_of_a_mixture_leave_its_attention_whole_and_of_a_dense_model_quantize_it(
    catalog: Snapshot, stored: str
) -> None:
    # AMD Quark's guide: --quant_scheme mxfp4 --exclude_layers "*self_attn*" "*mlp.gate" "*lm_head"; hf_quant_config.json
    # of nvidia/GLM-4.7-NVFP4 and nvidia/MiniMax-M2.5-NVFP4: "model.layers.0.self_attn*", of each layer, and "lm_head"
    assert kept(checkpoint_of(catalog, f"someone/Qwen3.8-2.4T-A95B-{stored}")) == [True, True, False]
    assert kept(checkpoint_of(catalog, f"someone/Qwen3-32B-{stored}")) == [False, False, False]


@pytest.mark.parametrize(
    ("stored", "gpu", "printed_bytes", "of_file", "of_gpu"),
    [
        ("MXFP4", "mi355x", 1_597_051_793_152, 1 / 2 + 4 / 32, 1 / 2 + 1 / 32),  # in files a scale has four bytes
        ("NVFP4", "b300", 1_447_265_951_488, 1 / 2 + 1 / 16, 1 / 2 + 1 / 16),
    ],
)
def test_four_bits_of_a_mixture_take_what_its_published_sizes_say(
    catalog: Snapshot, stored: str, gpu: str, printed_bytes: int, of_file: float, of_gpu: float
) -> None:
    # vllm-project/recipes, models/Qwen/Qwen3.8-2.4T-A95B.yaml: 4,892,388,705,238 bytes in 16 bits, and so many in four:
    # to 0.01 % those of 93 layers of experts, and all else in 16 bits. On a GPU the draft layer's experts are not
    # loaded; shared ones, half a per cent, are taken for quantized.
    of_layer = 512 * 3 * 8_192 * 2_048
    others = 4_892_388_705_238 - 2 * 93 * of_layer
    assert 93 * of_layer * of_file + others == pytest.approx(printed_bytes, rel=1e-4)

    model = facts_as_named(catalog, catalog.called_models.read(f"Inferact/Qwen3.8-2.4T-A95B-{stored}"))
    layout = Layout(tensor_parallel_size=8)
    plan = plan_replica(model, catalog.gpu(gpu), layout, StatedSettings(), rules_for("vllm", None))

    assert model_weights(plan).weight_bytes == pytest.approx(92 * of_layer * of_gpu + others, rel=0.01)
