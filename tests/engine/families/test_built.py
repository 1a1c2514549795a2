"""Classes whose parameters another library counts, as transformers builds them without memory, or a publisher prints."""

from typing import Any

import pytest

from service.catalog.snapshot import Snapshot
from service.engine import Layout, parse_architecture
from service.engine.inputs import EngineSettings
from service.engine.memory.parameters import num_parameters
from service.engine.memory.shared_pool import plan_kv_cache

OPT: dict[str, Any] = {
    "model_type": "opt", "vocab_size": 50272, "hidden_size": 2560, "num_hidden_layers": 32, "ffn_dim": 10240,
    "num_attention_heads": 32, "max_position_embeddings": 2048,
}  # fmt: skip
GRANITE: dict[str, Any] = {
    "model_type": "granite", "vocab_size": 49160, "hidden_size": 4096, "intermediate_size": 12800,
    "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 131072,
    "tie_word_embeddings": True,
}  # fmt: skip
CONFORMER: dict[str, Any] = {
    "num_layers": 16, "output_dim": 348, "hidden_dim": 1024, "input_dim": 160, "num_heads": 8, "dim_head": 128,
    "conv_kernel_size": 15, "conv_expansion_factor": 2, "feedforward_mult": 4, "context_size": 200, "max_pos_emb": 512,
}  # fmt: skip
READER: dict[str, Any] = {
    "num_hidden_layers": 2, "hidden_size": 1024, "encoder_hidden_size": 1024, "intermediate_size": 4096,
    "cross_attention_frequency": 1,
}  # fmt: skip
HUNYUAN: dict[str, Any] = {
    "model_type": "hunyuan_vl_text", "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3584, "vocab_size": 120818,
    "tie_word_embeddings": True, "max_position_embeddings": 32768,
}  # fmt: skip
SIGLIP: dict[str, Any] = {
    "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16, "patch_size": 16,
}  # fmt: skip
PHI_4: dict[str, Any] = {
    "hidden_size": 5120, "num_hidden_layers": 40, "num_attention_heads": 40, "num_key_value_heads": 10,
    "intermediate_size": 17920, "vocab_size": 100352, "max_position_embeddings": 16384, "tie_word_embeddings": False,
}  # fmt: skip
QWEN_2: dict[str, Any] = {
    "hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
    "intermediate_size": 18944, "tie_word_embeddings": False,
}  # fmt: skip
QWEN_3_5: dict[str, Any] = {
    "model_type": "qwen3_5_text", "vocab_size": 248320, "hidden_size": 4096, "intermediate_size": 12288,
    "num_hidden_layers": 32, "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 256,
    "max_position_embeddings": 32768, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
    "linear_value_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32,
    "layer_types": ["linear_attention", "linear_attention", "linear_attention", "full_attention"] * 8,
}  # fmt: skip
SMALL_SIGLIP: dict[str, Any] = {
    "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12, "patch_size": 16,
    "image_size": 224,
}  # fmt: skip
# Config, its parameters, and who counted them; the fields of a config are those of the published one.
BUILT: dict[str, tuple[dict[str, Any], int, str]] = {
    "BLIP-2 with OPT 2.7B": (
        {"architectures": ["Blip2ForConditionalGeneration"], "text_config": OPT, "vision_config": {}},
        3_744_679_936,
        "transformers 5.24; Salesforce/blip2-opt-2.7b under PEFT: `all params: 3,749,922,816`, 5,242,880 of them LoRA's",
    ),
    "Granite Speech 3.3 8B": (
        {
            "architectures": ["GraniteSpeechForConditionalGeneration"],
            "text_config": GRANITE,
            "encoder_config": CONFORMER,
            "projector_config": READER,
            "downsample_rate": 5,
            "window_size": 15,
        },
        8_648_834_396,
        "transformers 5.24, without the adapter",
    ),
    "HunyuanOCR": (
        {
            "architectures": ["HunYuanVLForConditionalGeneration"],
            "text_config": HUNYUAN,
            "vision_config": SIGLIP | {"spatial_merge_size": 2, "max_image_size": 2048, "out_hidden_size": 1024},
        },
        996_208_112,
        "transformers 5.24; huggingface.co/tencent/HunyuanOCR: 1B, safetensors 996M",
    ),
    "MiniCPM-OCR as its config class has it": (
        {
            "architectures": ["MiniCPMOcrForConditionalGeneration"],
            "tie_word_embeddings": True,
            "text_config": QWEN_3_5,
            "vision_config": SMALL_SIGLIP,
        },
        8_094_084_096,
        "transformers 5.24",
    ),
    "Phi 4 behind SigLIP 2": (
        PHI_4
        | {
            "architectures": ["Phi4ForCausalLMV"],
            "mm_hidden_size": 1152,
            "vision_config": SIGLIP | {"num_patches": 256},
        },
        14_659_507_200 + 397_407_904 + 1152 * 5120 + 5120 + 5120 * 5120 + 5120,
        "huggingface.co/microsoft/phi-4, safetensors; transformers 5.24 `Siglip2VisionModel`; `model.mm_projector`",
    ),
    "Molmo 7B D": (
        QWEN_2
        | {
            "architectures": ["MolmoForCausalLM"],
            "intermediate_size": 37888,
            "vocab_size": 152064,
            "embedding_size": 152064,
            "max_position_embeddings": 4096,
            "qkv_bias": True,
            "attention_layer_norm": False,
            "weight_tying": False,
        },
        8_021_025_280,
        "huggingface.co/allenai/Molmo-7B-D-0924, safetensors",
    ),
}


@pytest.mark.parametrize(("config", "expected", "counted"), BUILT.values(), ids=BUILT)
def test_parameters_are_those_that_others_count(config: dict[str, Any], expected: int, counted: str) -> None:
    assert num_parameters(parse_architecture(config)) == expected, counted


def test_glm_5_3_flash_is_read_as_transformers_writes_it_anew(catalog: Snapshot) -> None:
    """transformers 5.24 `Glm5NextConfig`: other names for kinds of layers and sizes, which vLLM's model code reads."""
    published: dict[str, Any] = catalog.model_entries["glm-5.3-flash"].config
    text = dict(published["text_config"])
    sizes = text.pop("linear_attn_config")
    text["layer_types"] = [kind.replace("deepseek_sparse", "indexed") for kind in text["layer_types"]]
    text |= {
        "linear_num_heads": sizes["num_heads"],
        "linear_head_dim": sizes["head_dim"],
        "linear_conv_kernel_dim": sizes["short_conv_kernel_size"],
    }

    assert parse_architecture({**published, "text_config": text}).layers == parse_architecture(published).layers


def test_qianfan_ocr_is_read_as_transformers_writes_it() -> None:
    """transformers 5.24 `QianfanOCRForConditionalGeneration` of its config class; lengths stand there once a direction.

    Source: vLLM 0.33 `model_executor/models/qianfan_ocr.py` (`_add_intern_vit_fields`).
    """
    config = {
        "architectures": ["QianfanOCRForConditionalGeneration"],
        "downsample_ratio": 0.5,
        "vision_feature_layer": -1,
        "vision_config": {
            "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "attention_bias": True,
            "use_qk_norm": False, "intermediate_size": 4096, "norm_type": "layer_norm", "image_size": [448, 448],
            "patch_size": [14, 14],
        },
        "text_config": {
            "model_type": "qwen3", "vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016,
            "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 128,
            "max_position_embeddings": 32768, "tie_word_embeddings": False,
        },
    }  # fmt: skip

    assert num_parameters(parse_architecture(config)) == 12_387_044_352


def test_kimi_audio_hears_with_whisper_and_answers_in_words_alone() -> None:
    """huggingface.co/moonshotai/Kimi-Audio-7B-Instruct: safetensors 9.77B, six layers and a head of them for sound.

    Whisper's large encoder of 637M (github.com/openai/whisper: half of 1,550M) lies in a folder of its own.
    """
    config = QWEN_2 | {
        "architectures": ["MoonshotKimiaForCausalLM"], "vocab_size": 168448, "max_position_embeddings": 8192,
        "kimia_adaptor_input_dim": 5120,
    }  # fmt: skip
    layer = 2 * 3584 * 3584 + 2 * 3584 * 512 + 3 * 3584 * 18944 + 3584 + 2 * 512 + 2 * 3584
    answering = 6 * layer + 168448 * 3584 + 3584

    heard = num_parameters(parse_architecture(config))

    assert (heard - 637e6 + answering) / 1e9 == pytest.approx(9.77, rel=0.001)


@pytest.mark.parametrize(
    ("name", "inner"),
    [
        ("Granite Speech 3.3 8B", "GraniteForCausalLM"),
        ("HunyuanOCR", "HunYuanDenseV1ForCausalLM"),
        ("BLIP-2 with OPT 2.7B", "OPTForCausalLM"),
    ],
)
def test_the_cache_is_that_of_the_language_model_inside(name: str, inner: str) -> None:
    settings = EngineSettings(
        gpu_memory_utilization=0.9,
        kv_cache_dtype="auto",
        max_model_len=2_048,
        max_num_batched_tokens=2_048,
        max_num_seqs=64,
    )
    config = BUILT[name][0]
    whole, alone = (
        plan_kv_cache(parse_architecture(each), layout=Layout(), settings=settings, available_bytes=1 << 32)
        for each in (config, config["text_config"] | {"architectures": [inner]})
    )

    assert (whole.num_gpu_blocks, whole.tokens) == (alone.num_gpu_blocks, alone.tokens)
