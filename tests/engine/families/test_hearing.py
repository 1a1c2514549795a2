"""Models that hear, against what their publishers print."""

from typing import Any

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.families import parse_architecture
from service.engine.inputs import Layout
from service.engine.memory.cache_shape import cache_shape
from service.engine.memory.parameters import num_parameters
from service.questions.capacity import CapacityQuery
from service.questions.sources import PastedModels, Sources

# config.json of mistralai/Voxtral-Mini-3B-2507, and what differs in Voxtral-Small-24B-2507
VOXTRAL: dict[str, Any] = {
    "architectures": ["VoxtralForConditionalGeneration"],
    "audio_config": {
        "head_dim": 64, "hidden_size": 1_280, "intermediate_size": 5_120, "max_source_positions": 1_500,
        "model_type": "voxtral_encoder", "num_attention_heads": 20, "num_hidden_layers": 32, "num_mel_bins": 128,
    },
    "hidden_size": 3_072,
    "model_type": "voxtral",
    "text_config": {
        "head_dim": 128, "hidden_size": 3_072, "intermediate_size": 8_192, "max_position_embeddings": 131_072,
        "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 30, "num_key_value_heads": 8,
        "rope_scaling": None, "rope_theta": 100_000_000.0, "vocab_size": 131_072,
    },
    "torch_dtype": "bfloat16",
}  # fmt: skip
OMNI = "nvidia/Nemotron-3-Nano-Omni-30B-A3B-Reasoning"
SMALL = {"hidden_size": 5_120, "intermediate_size": 32_768, "num_hidden_layers": 40}


@pytest.mark.parametrize(
    ("text", "gigabytes"),
    # smeltcore.com/recipes/voxtral-mini-3b-on-rtx-5070: "~9.4 GB bf16 weights per HF Files tab"; the other by its name
    [({}, 9.4), (SMALL, 48.0)],
)
def test_voxtral_adds_up_to_what_is_printed(text: dict[str, Any], gigabytes: float) -> None:
    config = {**VOXTRAL, "text_config": {**VOXTRAL["text_config"], **text}}

    assert 2 * num_parameters(parse_architecture(config)) / 1e9 == pytest.approx(gigabytes, rel=0.012)


def test_voxtral_keeps_its_language_model_s_cache_alone() -> None:
    assert cache_shape(parse_architecture(VOXTRAL), Layout(), "bf16", None).bytes_per_token == 2 * 30 * 8 * 128 * 2


def test_nemotron_omni_is_as_heavy_as_its_files_in_both_formats(catalog: Snapshot) -> None:
    sources = Sources(catalog=catalog, timers=None, pasted_models=PastedModels())

    def weights(name: str) -> int:
        # Up to 0.20 what the allocator leaves over serves other tensors.
        asked = CapacityQuery(model=name, gpu="h100", gpu_count=1, tensor_parallel_size=1, engine_version="0.20")
        return asked.answer(sources).result.memory_per_gpu.weight_bytes

    # 33,015,632,214 elements of 16 bits (huggingface.co/unsloth); 22,409,034,192 bytes of NVFP4, FP8 and the rest
    assert weights(f"{OMNI}-BF16") == pytest.approx(2 * 33_015_632_214, rel=0.002)
    assert weights(f"{OMNI}-NVFP4") == pytest.approx(22_409_034_192, rel=0.002)


def test_parakeet_counts_as_transformers_builds_it(catalog: Snapshot) -> None:
    config = dict(catalog.model_entries["nemotron-3-nano-omni-30b-a3b"].config)
    deaf = {name: value for name, value in config.items() if name != "sound_config"}

    # `ParakeetEncoder` of transformers 5.24 without biases of attention has 608,879,616, and the projector follows
    assert num_parameters(parse_architecture(config)) - num_parameters(parse_architecture(deaf)) == (
        608_879_616 + 1_024 + 1_024 * 4_096 + 4_096 * 2_688
    )
