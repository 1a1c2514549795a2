"""Quantizations that versions load, and on which GPUs: the whole grid against what their sources state."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.version import Version

from service.engine import parse_quantization
from service.engine.engines.device import Device
from service.engine.engines.methods import LOADED, check_method, is_deprecated, lines_of, scheme_of
from service.engine.engines.plans import plan_of
from service.engine.errors import RefusedStartError
from service.engine.formats.quantization import standard_quantization
from tests.conftest import shared_catalog

ROWS: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("refused_methods.yaml").read_text("utf-8"))
READ = [
    "0.8.5",
    "0.9.2",
    "0.10.2",
    "0.11.0",
    "0.11.2",
    "0.12.0",
    "0.13.0",
    "0.14.1",
    "0.15.1",
    "0.16.0",
    "0.17.1",
    "0.18.0",
    "0.19.1",
    "0.20.2",
    "0.22.0",
    "0.23.0",
    "0.24.0",
    "0.25.1",
    "0.26.0",
    "0.27.1",
    "0.28.0",
    "0.29.0",
    "0.30.0",
    "0.31.0",
    "0.32.0",
    "0.33.0",
]
DENSE, MIXTURE = (shared_catalog().model(name).architecture for name in ("qwen3-8b", "qwen3-30b-a3b"))
CAPABILITIES = (70, 75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121)


def on(capability: int, version: str) -> Device:
    """Return a GPU of a capability, written as the engine does, under a version."""
    return Device(capability=divmod(capability, 10), plan=plan_of(Version(version)))


def refuses(stated: dict[str, Any], device: Device, *, has_experts: bool = False) -> bool:
    """Return whether the engine refuses a checkpoint."""
    try:
        check_method(parse_quantization(stated), device, "gpu", MIXTURE if has_experts else DENSE)
    except RefusedStartError:
        return True
    return False


def lowest_by_version(read: str) -> dict[str, str]:
    """Return what each version that was read returns."""
    changes = dict(change.split(":") for change in read.split())
    said, values = "-", {}
    for version in READ:
        said = changes.get(version, said)
        values[version] = said
    return values


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["class"])
def test_every_version_refuses_on_every_generation_what_its_source_says(row: dict[str, Any]) -> None:
    for version, lowest in lowest_by_version(row["read"]).items():
        for capability in CAPABILITIES:
            runs = lowest != "-" and int(lowest) <= capability < row.get("below", 1_000)

            assert refuses(row["quantization"], on(capability, version)) is not runs, (version, capability)


@pytest.mark.parametrize(
    ("capability", "version", "is_refused"),
    [
        (86, "0.8.5", True),  # vllm-project/vllm issue 17581: `type fp8e4nv not supported in this architecture`
        (86, "0.9.2", False),
        (75, "0.13.0", True),
        (75, "0.14.1", False),
    ],
)
def test_blocks_and_experts_of_fp8_run_before_ada_since_marlin_does(
    capability: int,
    version: str,
    is_refused: bool,  # noqa: FBT001 - a column
) -> None:
    blocks = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}

    assert refuses(blocks, on(capability, version)) is is_refused
    assert (
        refuses({"quant_method": "fp8", "activation_scheme": "dynamic"}, on(capability, version), has_experts=True)
        is is_refused
    )


def test_a_group_of_a_checkpoint_is_held_to_its_own_line() -> None:
    both = {"targets": ["re:.*mlp.*"], "input_activations": {"num_bits": 8}, "weights": {"num_bits": 8, "type": "int"}}
    packed = {"targets": ["re:.*attn.*"], "weights": {"num_bits": 4, "type": "int", "group_size": 128}}
    stated = {"quant_method": "compressed-tensors", "config_groups": {"group_0": both, "group_1": packed}}

    assert refuses(stated, on(120, "0.33"))
    assert not refuses(stated, on(89, "0.33"))


ROW_SCALES = {"num_bits": 8, "strategy": "channel"}
BY_TOKEN = {"num_bits": 8, "strategy": "token", "dynamic": True}
OF_TENSOR = {"num_bits": 8, "strategy": "tensor"}
GROUPED = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128}


# vLLM 0.33's own planner of a small model with 16 experts, on simulated GPUs.
@pytest.mark.parametrize(
    ("packing", "weights", "activations", "hopper", "others"),
    [
        ("float-quantized", ROW_SCALES | {"type": "float"}, BY_TOKEN, True, True),
        ("float-quantized", OF_TENSOR | {"type": "float"}, OF_TENSOR, True, True),
        ("float-quantized", ROW_SCALES | {"type": "float"}, None, False, False),  # "only format: pack-quantized"
        ("int-quantized", ROW_SCALES | {"type": "int"}, BY_TOKEN, True, True),
        ("int-quantized", OF_TENSOR | {"type": "int"}, OF_TENSOR, False, False),  # "Unsupported FusedMoe scheme"
        (
            "pack-quantized",
            ROW_SCALES | {"type": "int"},
            None,
            False,
            True,
        ),  # `assert weight_quant.strategy == "group"`
        ("pack-quantized", GROUPED | {"strategy": "channel", "group_size": None}, None, False, True),
        ("pack-quantized", GROUPED, None, True, True),
    ],
)
def test_experts_are_not_run_in_every_way_that_dense_matrices_are(
    packing: str, weights: dict[str, Any], activations: dict[str, Any] | None, *, hopper: bool, others: bool
) -> None:
    group = {"targets": ["Linear"], "weights": weights, "input_activations": activations}
    stated = {"quant_method": "compressed-tensors", "format": packing, "config_groups": {"group_0": group}}

    for capability, runs in ((80, others), (89, others), (90, hopper)):
        assert refuses(stated, on(capability, "0.33"), has_experts=True) is not runs
        assert not refuses(stated, on(capability, "0.33"))
    assert not refuses(stated | {"ignore": ["re:.*experts.*"]}, on(90, "0.33"), has_experts=True)


def test_integers_beside_fp8_run_on_hopper_alone() -> None:
    # `_is_fp8_w4a8_sm90`: `match_exact=True`
    group = {"targets": ["Linear"], "weights": GROUPED, "input_activations": BY_TOKEN | {"type": "float"}}
    stated = {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0": group}}

    assert [refuses(stated, on(capability, "0.33")) for capability in (80, 89, 90, 100, 120)] == [
        True,
        True,
        False,
        True,
        True,
    ]


def test_blocks_of_auto_round_are_not_run_in_experts() -> None:
    # vLLM 0.33 `inc_scheme.py` says "does not support MoE layers" of them
    stated = {"quant_method": "auto-round", "bits": 8, "group_size": [128, 128], "data_type": "fp"}

    assert [refuses(stated, on(90, "0.33"), has_experts=each) for each in (False, True)] == [False, True]
    assert refuses(stated, on(90, "0.24"))  # `SUPPORTED_DTYPES = {"int"}`


def test_awq_of_eight_bits_is_loaded_no_more() -> None:
    # vLLM 0.14.1 to 0.33 (`TYPE_MAP`): "Unsupported num_bits = 8. Supported: 4."; SGLang 0.5.23 `awq.py` has both
    stated = {"quant_method": "awq", "bits": 8, "group_size": 128, "zero_point": True}

    assert [refuses(stated, on(90, version)) for version in ("0.12.0", "0.14.1", "0.33")] == [False, True, True]
    assert not refuses(stated | {"bits": 4}, on(90, "0.33"))


def test_torchao_s_fp8_of_both_operands_needs_ada() -> None:
    # vLLM 0.33 `torchao.py` says that it "requires GPU compute capability >= 8.9"
    made = {"_type": "Float8DynamicActivationFloat8WeightConfig", "_data": {}}
    stated = {"quant_method": "torchao", "quant_type": {"default": made}}

    assert [refuses(stated, on(capability, "0.33")) for capability in (80, 89)] == [True, False]


def test_deprecated_methods_are_loaded_when_told_to() -> None:
    stored = parse_quantization(
        {"quant_method": "fbgemm_fp8", "modules_to_not_convert": [], "activation_scale_ub": 1200.0}
    )

    assert [is_deprecated(stored, version) for version in ("0.13", "0.14.1", "0.33")] == [False, True, True]
    assert not is_deprecated(parse_quantization({"quant_method": "mxfp4"}), "0.33")


def test_a_refusal_says_the_rule_and_what_would_be_taken() -> None:
    stated = {"quant_method": "bitsandbytes", "load_in_4bit": True}

    with pytest.raises(RefusedStartError, match="no longer loads bitsandbytes-4bit") as refusal:
        check_method(parse_quantization(stated), on(90, "0.33"), "gpu", DENSE)

    assert refusal.value.accepted == "an engine_version below 0.28, or another format"
    assert refusal.value.field == "weight_format"  # no GPU has it run


def test_other_engines_are_not_held_to_these_lines() -> None:
    other = Device(is_vllm_on_cuda=False)

    check_method(parse_quantization({"quant_method": "bitsandbytes"}), other, "gpu", DENSE)


@pytest.mark.parametrize("weight_format", ["fp8", "int8", "int4", "mxfp4", "nvfp4"])
def test_a_format_s_usual_recipe_has_a_line(weight_format: Any) -> None:
    assert lines_of(standard_quantization(weight_format), has_experts=True)


def test_lines_stand_newest_first() -> None:
    for lines in LOADED.values():
        assert all(Version(newer.since) > Version(older.since) for newer, older in pairwise(lines))


def test_eight_bits_of_weights_alone_are_no_eight_bits_of_both() -> None:
    group = {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "int"}}
    alone = parse_quantization({"quant_method": "compressed-tensors", "config_groups": {"group_0": group}})

    assert scheme_of(alone) == "int8-group"
    assert not refuses({"quant_method": "compressed-tensors", "config_groups": {"group_0": group}}, on(120, "0.33"))
