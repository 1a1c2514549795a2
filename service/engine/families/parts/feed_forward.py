"""The feed-forward part of every layer: dense, mixture of experts, or none.

Sources:
    vLLM 0.33 model files: deepseek_v2.py (`first_k_dense_replace`, `moe_layer_freq`),
    qwen2_moe.py and qwen3_moe.py (`decoder_sparse_step`, `mlp_only_layers`), llama4.py
    (`interleave_moe_layer_step`), mixtral.py, gpt_oss.py, minimax_m2.py, nemotron_nas.py.
"""

from dataclasses import replace

from service.engine.arithmetic import ceil_div
from service.engine.config_reader import ConfigReader, is_list, is_mapping, unknown_kind
from service.engine.families.parts.attention import hidden_size
from service.engine.families.parts.embedding import BIASED_THROUGHOUT
from service.engine.families.parts.recurrent import nemotron_kinds
from service.engine.layers import DenseMlp, Mlp, MoeMlp, NoMlp

EXPERT_COUNT_NAMES = ("num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts")
TOP_K_NAMES = ("num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_topk", "moe_top_k", "moe_k")
# State a shared expert that the model code does not build.
NO_SHARED_EXPERT = frozenset({"Qwen3MoeForCausalLM", "Qwen3VLMoeForConditionalGeneration"})
# Have one network beside the experts, which stands alone where there are no experts.
GRANITE_SHARED = ("GraniteMoeHybrid", "GraniteMoeShared", "GraniteMoeSWA")
FP32_ROUTER = (
    "MiniMaxM2",
    "MiniMaxM3",
    "Glm4Moe",
    "MiMoV2",
    "Ernie4_5_",
    "Step3p",
    "Afmoe",
    "HYV",
    "Longcat",
    "Param2MoE",
)
LONGCAT = "Longcat"
KIMI_LINEAR = ("KimiLinear", "KimiK3")
CORRECTION_FLAGS = (
    "use_routing_bias",
    "use_moe_router_bias",
    "use_expert_bias",
    "moe_router_enable_expert_bias",
    "router_enable_expert_bias",
)
SCORE_CORRECTION = (
    "Afmoe",
    "DeepseekV4",
    "Glm4Moe",
    "GlmMoe",
    "MiniMaxM2",
    "Laguna",
    "DeepseekV32",
    "NemotronH",
    "AXK1",
    "Ernie4_5_",
    "ExaoneMo",
    "HYV",
    "Longcat",
    "Param2MoE",
    "Sarvam",
)
# Their ranks take different tokens to the experts, under tensor, data and expert parallelism together.
SPLITS_TOKENS = (
    "DeepseekV2",
    "DeepseekV3",
    "DeepseekV4",
    "GlmMoeDsa",
    "KimiK25",
    "KimiVL",
    "AXK1",
    "Qwen3Next",
    "Qwen3_5Moe",
    "NemotronH",
    "Llama4",
)
# And to the first, dense layers as well (vLLM 0.33 `models/deepseek_v32/nvidia/model.py`).
DENSE_SPLITS_TOKENS = ("DeepseekV32", "GlmMoeDsa")
# Columns of one of their experts on a rank, at least (kimi_k3/nvidia/model.py).
KIMI_RANK_COLUMNS = 256
# Rows of an expert on one rank, as the MXFP4 kernels on Hopper want them (mxfp4.py).
MXFP4_PADDING = 64
# The first few layers are dense; after them every one has experts, or every n-th.
FIRST_DENSE = (
    "Deepseek",
    "Kimi",
    "Glm",
    "Dots1",
    "Bailing",
    "Mistral4",
    "MistralLarge3",
    "AXK1",
    "ExaoneMo",
    "Cohere2Moe",
    "HYV",
    "PanguUltra",
    "Param2MoE",
    "Sarvam",
)
PURELY_RECURRENT = frozenset({"MambaForCausalLM", "FalconMambaForCausalLM", "Mamba2ForCausalLM"})
PLAIN = frozenset(  # two matrices, no gate
    {
        "Starcoder2ForCausalLM",
        "FalconForCausalLM",
        "NemotronForCausalLM",
        "Jais2ForCausalLM",
        "GPT2LMHeadModel",
        "GPTJForCausalLM",
        "GPTBigCodeForCausalLM",
        "BloomForCausalLM",
        "PhiForCausalLM",
        "OPTForCausalLM",
        "GPTNeoXForCausalLM",
        "NemotronHForCausalLM",
        "ArceeForCausalLM",
        "ApertusForCausalLM",
    }
)


def mlp_layers(reader: ConfigReader, name: str, num_layers: int) -> tuple[Mlp, ...]:
    """Return the feed-forward part of each layer of an architecture."""
    if name == "DeciLMForCausalLM":
        return _searched(reader)
    if name in PURELY_RECURRENT or name == "Zamba2ForCausalLM":
        return (NoMlp(),) * num_layers
    if name == "NemotronHForCausalLM":
        return _nemotron(reader, name)
    if name == "HunYuanMoEV1ForCausalLM":
        reader = _alike(reader)
    dense = _dense(reader, name)
    num_experts = reader.integer(*EXPERT_COUNT_NAMES, default=0)
    if num_experts <= 1:
        return _dense_layers(reader, name, dense, num_layers)
    moe = _moe(reader, name, num_experts)
    if name.startswith("DeepseekV4"):
        return _hashed(reader, moe, num_layers)
    return tuple(moe if _is_sparse(reader, name, index) else dense for index in range(num_layers))


def _alike(reader: ConfigReader) -> ConfigReader:
    """Return Hunyuan's config with its per-layer lists as one number each, which the engine takes them for."""
    values = reader.values()
    for field in ("moe_topk", "num_shared_expert", "moe_intermediate_size"):
        stated = reader.raw(field)
        if not is_list(stated):
            continue
        if not stated or any(it != stated[0] for it in stated):
            raise unknown_kind(field, stated, "the same number for every layer")
        values[field] = stated[0]
    return ConfigReader(values)


def _dense_layers(reader: ConfigReader, name: str, dense: DenseMlp, num_layers: int) -> tuple[Mlp, ...]:
    """Return dense layers: alike, of stated sizes (Gemma 3n), or twice as wide where they share a cache (Gemma 4)."""
    sizes = reader.raw("intermediate_size")
    if is_list(sizes):
        stated = reader.integers("intermediate_size") or ()
        if len(stated) < num_layers or min(stated) <= 0:
            raise unknown_kind("intermediate_size", stated, "one number above 0 per layer")
        return tuple(replace(dense, intermediate_size=size) for size in stated[:num_layers])
    if name.startswith("Gemma4") and reader.flag("use_double_wide_mlp"):
        first_shared = num_layers - reader.integer("num_kv_shared_layers", default=0)
        wide = replace(dense, intermediate_size=2 * dense.intermediate_size)
        return tuple(wide if index >= first_shared > 0 else dense for index in range(num_layers))
    return (dense,) * num_layers


def _hashed(reader: ConfigReader, moe: MoeMlp, num_layers: int) -> tuple[Mlp, ...]:
    """Return DeepSeek V4's layers: experts everywhere, fixed by token in the first few."""
    hashed = replace(moe, hash_table_rows=reader.positive("vocab_size"), has_score_correction=False)
    kinds = reader.strings("mlp_layer_types") or ()
    first = reader.integer("num_hash_layers", default=kinds.count("hash_moe"))
    return tuple(hashed if index < first else moe for index in range(num_layers))


def _dense(reader: ConfigReader, name: str) -> DenseMlp:
    default = 4 * hidden_size(reader)
    names = ("intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim", "moe_intermediate_size")
    size = default if is_list(reader.raw(*names)) else reader.positive(*names, default=default)
    if name.startswith("Llama4"):
        size = reader.positive("intermediate_size_mlp", default=size)
    if name == "Cohere2MoeForCausalLM":
        size = reader.positive("prefix_dense_intermediate_size", default=size)
    if name.startswith("MiniMaxM3"):
        size = reader.positive("dense_intermediate_size")
    if name.startswith(GRANITE_SHARED):
        size = reader.integer("shared_intermediate_size", default=0) or size
    if name == "Lfm2ForCausalLM":
        size = _adjusted(reader, size)
    bias = reader.flag("mlp_bias", "use_bias")
    if name == "Starcoder2ForCausalLM":
        bias = reader.flag("use_bias", default=True)
    if name in BIASED_THROUGHOUT or name == "GPTJForCausalLM":
        bias = reader.flag("enable_bias", default=True)
    return DenseMlp(
        intermediate_size=size,
        is_gated=name not in PLAIN,
        has_bias=bias,
        has_output_bias=name == "TeleChat2ForCausalLM",
        splits_tokens=name.startswith(DENSE_SPLITS_TOKENS),
        is_whole=name == "GPTBigCodeForCausalLM",  # runs through the engine's generic backend, which has no plan for it
    )


def _adjusted(reader: ConfigReader, stated: int) -> int:
    """Return LFM2's width: two thirds of what is stated, times a factor, up to a whole multiple (lfm2.py)."""
    size = reader.positive("block_ff_dim", default=stated)
    if not reader.flag("block_auto_adjust_ff_dim", default=True):
        return size
    size = int(reader.number("block_ffn_dim_multiplier", default=1.0) * int(2 * size / 3))
    multiple = reader.positive("block_multiple_of", default=256)
    return ceil_div(size, multiple) * multiple


def _moe(reader: ConfigReader, name: str, num_experts: int) -> MoeMlp:
    size = reader.positive("moe_intermediate_size", "expert_hidden_dim", "expert_ffn_hidden_size", "intermediate_size")
    shared = (
        reader.integer(
            "n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert", default=0
        )
        * size
    )
    shared = reader.integer("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", default=shared)
    if name.startswith("MiniMaxM3"):
        size = reader.positive("intermediate_size")
        shared = size * reader.integer("n_shared_experts", default=0)
    if name.startswith("Step3"):
        shared = reader.integer("share_expert_dim", default=0)
    if name in NO_SHARED_EXPERT:
        shared = 0
    if name.startswith(GRANITE_SHARED):
        shared = reader.integer("shared_intermediate_size", default=0)
    if name.startswith("Llama4"):
        shared = size
    if name == "NemotronHForCausalLM":
        each = reader.positive("moe_shared_expert_intermediate_size", default=size)
        shared = each * reader.integer("n_shared_experts", default=0)
    return MoeMlp(
        image_expert_size=reader.integer("image_expert_size", default=0),
        num_experts=num_experts,
        num_experts_per_tok=reader.positive(*TOP_K_NAMES, default=1),
        moe_intermediate_size=size,
        shared_expert_intermediate_size=shared,
        has_shared_gate=shared > 0 and name.startswith(("Qwen2Moe", "Qwen3Next", "Qwen3_5Moe")),
        has_wide_router=_has_wide_router(reader, name),
        rank_padding=MXFP4_PADDING if name == "GptOssForCausalLM" else 1,
        min_rank_columns=KIMI_RANK_COLUMNS if name.startswith(KIMI_LINEAR) else 0,
        latent_size=reader.integer("moe_latent_size", "routed_expert_hidden_size", default=0),
        has_latent_norm=reader.flag("latent_moe_use_norm"),
        dense_intermediate_size=_dense_beside(reader, name),
        dense_count=2 if name.startswith(LONGCAT) else 1,
        has_expert_norms=name.startswith("Gemma4"),
        num_idle_experts=reader.integer("zero_expert_num", default=0) if name.startswith(LONGCAT) else 0,
        is_gated=name not in PLAIN,
        expert_scheme=_expert_scheme(reader, name),
        has_bias=name == "GptOssForCausalLM",
        has_router_bias=name == "GptOssForCausalLM",
        has_score_correction=_has_score_correction(reader, name),
        splits_tokens=name.startswith(SPLITS_TOKENS),
    )


def _dense_beside(reader: ConfigReader, name: str) -> int:
    """Return the width of the dense networks beside the experts of a layer."""
    if name.startswith(LONGCAT):
        return reader.positive("ffn_hidden_size", "intermediate_size")
    return reader.positive("intermediate_size") if name.startswith("Gemma4") else 0


def _has_wide_router(reader: ConfigReader, name: str) -> bool:
    """Return whether the router is in fp32; the Bailing line says so in its config."""
    if name.startswith(("Bailing", "SarvamMoE")):
        return reader.raw("router_dtype") == "fp32"
    return name.startswith(FP32_ROUTER)


def _expert_scheme(reader: ConfigReader, name: str) -> str:
    """Return how DeepSeek V4's quantized checkpoints store experts: four bits beside fp8 for the rest."""
    if not name.startswith("DeepseekV4") or reader.raw("expert_dtype") not in (None, "fp4"):
        return ""
    stated = ConfigReader(reader.mapping("quantization_config") or {})
    return "nvfp4" if stated.raw("moe_quant_algo") == "NVFP4" else "mxfp4"


def _has_score_correction(reader: ConfigReader, name: str) -> bool:
    if name.startswith(KIMI_LINEAR) or reader.raw("topk_method") == "noaux_tc" or reader.flag(*CORRECTION_FLAGS):
        return True
    return name.startswith(SCORE_CORRECTION)


def _is_sparse(reader: ConfigReader, name: str, index: int) -> bool:
    """Return whether the layer has experts."""
    kinds = reader.raw("mlp_layer_types")
    if is_list(kinds) and index < len(kinds):
        return kinds[index] == "sparse"
    if name.startswith(("Lfm2Moe", "Afmoe")):
        return index >= reader.integer("num_dense_layers", default=0)
    if name.startswith("Step3"):
        return _is_sparse_step(reader, index)
    if name.startswith("Llama4"):
        stated = reader.integers("moe_layers")
        step = reader.positive("interleave_moe_layer_step", default=1)
        return index in stated if stated is not None else (index + 1) % step == 0
    frequency = reader.raw("moe_layer_freq")
    if is_list(frequency):
        return index < len(frequency) and bool(frequency[index])
    if name.startswith(FIRST_DENSE):
        every = frequency if isinstance(frequency, int) and frequency > 0 else 1
        return index >= reader.integer("first_k_dense_replace", default=0) and index % every == 0
    if name.startswith("Jamba"):
        period, offset = (
            reader.positive("expert_layer_period", default=2),
            reader.integer("expert_layer_offset", default=1),
        )
        return index % period == offset
    if name.startswith("Ernie"):
        first = reader.integer("moe_layer_start_index", default=0)
        last = reader.integer("moe_layer_end_index", default=10**6)
        every = reader.positive("moe_layer_interval", default=1)
        return first <= index <= last and (index + 1) % every == 0
    only_dense = reader.integers("mlp_only_layers") or ()
    return index not in only_dense and (index + 1) % reader.positive("decoder_sparse_step", default=1) == 0


def _is_sparse_step(reader: ConfigReader, index: int) -> bool:
    """Return Step's rule: `moe_layers_enum` lists layers in one string; without it all but the first have experts."""
    if reader.raw("moe_layers_enum") is None:
        return index > 0
    numbers = reader.text("moe_layers_enum").strip().split(",")
    if not all(number.strip().isdecimal() for number in numbers):
        raise unknown_kind("moe_layers_enum", reader.raw("moe_layers_enum"), "layer numbers with commas between")
    return index in {int(number) for number in numbers}


def _nemotron(reader: ConfigReader, name: str) -> tuple[Mlp, ...]:
    """Return the feed-forward layers of Nemotron-H, which stand alone between its mixers."""
    layers: list[Mlp] = []
    for kind in nemotron_kinds(reader):
        if kind == "mlp":
            layers.append(_dense(reader, name))
        elif kind == "moe":
            layers.append(_moe(reader, name, reader.positive(*EXPERT_COUNT_NAMES)))
        else:
            layers.append(NoMlp())
    return tuple(layers)


def _searched(reader: ConfigReader) -> tuple[Mlp, ...]:
    """Return what architecture search left of each layer (`ffn_mult` rounded up to 256)."""
    layers: list[Mlp] = []
    blocks = reader.raw("block_configs")
    for block in blocks if is_list(blocks) else ():
        part = ConfigReader(ConfigReader(block if is_mapping(block) else {}).mapping("ffn") or {})
        if part.flag("no_op") or (part.raw("ffn_mult") is None and part.raw("intermediate_size") is None):
            layers.append(NoMlp())
            continue
        size = part.integer("intermediate_size", default=0)
        multiple = part.number("ffn_mult", default=0.0)
        if multiple:
            size = -(-int(2 * multiple * hidden_size(reader) / 3) // 256) * 256
        layers.append(DenseMlp(intermediate_size=size))
    return tuple(layers)
