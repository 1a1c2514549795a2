"""From entries to what the engine computes with."""

from service.catalog.facts import ETHERNET_BYTES_PER_S, PCIE_BYTES_PER_S, gpu_facts, model_facts, offer_facts
from service.engine.errors import EngineError
from service.engine.facts import ModelFacts, as_stored
from service.engine.memory.parameters import num_parameters
from tests.catalog.samples import MODEL, SOURCE, gpu, model, offer, with_figure


def test_a_gpu_without_a_stated_fabric_is_given_its_slot_and_an_ordinary_network() -> None:
    facts = gpu_facts(gpu())

    assert facts.scale_up_bytes_per_s == PCIE_BYTES_PER_S
    assert facts.scale_out_bytes_per_s == ETHERNET_BYTES_PER_S
    assert facts.peak_flop_per_s == {}


def test_what_a_process_can_use_is_what_counts() -> None:
    entry = gpu(figures=with_figure("usable_memory_bytes", 100_000_000_000)["figures"])

    assert gpu_facts(entry).memory_bytes == 100_000_000_000
    assert gpu_facts(gpu()).memory_bytes == 107_374_182_400


def test_a_gpu_names_its_measured_kernels() -> None:
    assert gpu_facts(gpu()).measured_as is None
    assert gpu_facts(gpu(measured_as="h100_sxm")).measured_as == "h100_sxm"


def test_a_checkpoint_without_a_rule_is_left_out_unless_it_is_the_models_own() -> None:
    strange = {"weight_format": "fp8", "hf_id": "made/Strange", "quantization_config": {"quant_method": "no-such"}}
    own = MODEL["checkpoints"][0]

    beside = model_facts(model(checkpoints=[own, {**strange, "source": SOURCE}]))
    alone = model_facts(model(checkpoints=[{**strange, "is_default": True, "source": SOURCE}]))

    assert isinstance(beside, ModelFacts)
    assert [it.hf_id for it in beside.checkpoints] == ["made/Up-8B"]
    assert isinstance(alone, EngineError)


def test_a_checkpoint_of_another_config_is_read_by_its_own() -> None:
    padded = {
        "weight_format": "int4",
        "hf_id": "made/Up-8B-AWQ",
        "quantization_config": {"quant_method": "awq", "zero_point": True, "bits": 4, "group_size": 128},
        "config": {"intermediate_size": 14464},
        "source": SOURCE,
    }

    facts = model_facts(model(checkpoints=[MODEL["checkpoints"][0], padded]))

    assert isinstance(facts, ModelFacts)
    own, awq = facts.checkpoints
    assert as_stored(facts, own) is facts
    wider = as_stored(facts, awq).architecture
    assert num_parameters(wider) - num_parameters(facts.architecture) == 32 * 3 * 4096 * (14464 - 14336)
    assert '"intermediate_size": 14464' in as_stored(facts, awq).config_json


def test_a_config_that_breaks_its_reader_is_refused_and_takes_no_other_along() -> None:
    numbers = "9" * 5000  # longer than Python makes a number of
    config = {
        **MODEL["config"],
        "architectures": ["Step3TextForCausalLM"],
        "moe_num_experts": 8,
        "moe_top_k": 2,
        "moe_intermediate_size": 64,
        "share_expert_dim": 64,
        "share_q_dim": 64,
        "num_attention_groups": 1,
        "moe_layers_enum": numbers,
    }

    facts = model_facts(model(config=config))

    assert isinstance(facts, EngineError)
    assert numbers not in facts.detail


def test_an_offer_keeps_its_date() -> None:
    assert offer_facts(offer()).as_of == "2026-11-01"
