"""Classes that SGLang's ranks and pipeline stages hold otherwise than vLLM's, and those that read text alone there.

A class that SGLang lacks runs by that of the Transformers library, whose towers no rank splits, and whose attention
all ranks do.

Sources:
    SGLang 0.5.23 `srt/models/` (each class's constructor: `lm_head` beside no question for `is_last_rank`,
    `embed_tokens` beside none for `is_first_rank`; `gemma3_causal.py`, `gemma3n_causal.py` and `gemma4_causal.py`:
    an `nn.Embedding`; `bailing_moe_linear.py`: a head in fp32, as large as two; `lfm2.py`, `lfm2_moe.py` and
    `lightonocr.py`: a head of its own beside tied embeddings; `dots_ocr.py`: one inside its language model and one
    around it; `mllama4.py`: `has_vision`; `glm4v.py` and others: `update_vit_attn_dummy_heads_config`),
    `srt/model_loader/utils.py` (`resolve_transformers_arch`), `srt/model_executor/model_runner_components/
    layer_setup.py` (`resolve_layer_indices`: a class without `start_layer` has all), `srt/configs/model_config.py`
    (`mm_disabled_models`: of Gemma 3 and Llama 4 since 0.4.10, of Step 3 since 0.5.3),
    `srt/arg_groups/model_overrides/qwen3_vl.py` ("cuda_ipc"); each class's attention, split by `get_parallel().tp_size`
    where others say `attn_tp_size`; `layers/dp_attention.py` (`reject_attn_tp_shard_with_tp_reduce`: "the output is
    wrong", of `phimoe.py`, and of towers by `layers/attention/vision.py` and `models/kimi_vl_moonvit.py`);
    0.5.8 to 0.5.23 `layers/moe/fused_moe_triton/layer.py` ("flashinfer_trtllm pads intermediate_size to a multiple of
    128"; pull request 16824, of Qwen3 on eight ranks), `server_args.py` and `srt/arg_groups/model_overrides/` ("Use
    flashinfer_trtllm as MoE runner backend on sm100").
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from service.engine.formats.scheme import Scheme
from service.engine.layers import Ends, SglangCopies, SglangTower

Since = tuple[tuple[Scheme, str], ...]  # by scheme, from which version on

HEAD_ON_EVERY_STAGE_NAMES: Final = """
    ApertusForCausalLM ArceeForCausalLM BailingMoeForCausalLM BailingMoeV2ForCausalLM Exaone4ForCausalLM
    ExaoneMoEForCausalLM ExaoneMoeForCausalLM Glm4MoeForCausalLM Glm4MoeLiteForCausalLM GptOssForCausalLM
    InternLM3ForCausalLM LlamaForCausalLM Mistral3ForConditionalGeneration MistralForCausalLM MixtralForCausalLM
    OPTForCausalLM Phi3ForCausalLM Qwen2MoeForCausalLM Qwen3MoeForCausalLM
"""
HEAD_ON_EVERY_STAGE: Final = frozenset(HEAD_ON_EVERY_STAGE_NAMES.split())
TABLE_ON_EVERY_STAGE: Final = frozenset({"MiniMaxM2ForCausalLM", "OPTForCausalLM"})
WHOLE_TABLE_NAMES: Final = """
    Gemma3ForCausalLM Gemma3ForConditionalGeneration Gemma3nForCausalLM Gemma3nForConditionalGeneration
    Gemma4ForCausalLM Gemma4ForConditionalGeneration Gemma4UnifiedForConditionalGeneration
"""
WHOLE_TABLE: Final = frozenset(WHOLE_TABLE_NAMES.split())
MORE_HEADS_NAMES: Final = """
    BailingMoeV2_5ForCausalLM DotsOCRForCausalLM Lfm2ForCausalLM Lfm2MoeForCausalLM Lfm2VlForConditionalGeneration
    LightOnOCRForConditionalGeneration
"""
MORE_HEADS: Final = frozenset(MORE_HEADS_NAMES.split())
WHOLE_TOWER_NAMES: Final = """
    AriaForConditionalGeneration Blip2ForConditionalGeneration FuyuForCausalLM Idefics3ForConditionalGeneration
    LlavaNextForConditionalGeneration LlavaOnevisionForConditionalGeneration PaliGemmaForConditionalGeneration
    SmolVLMForConditionalGeneration
"""
WHOLE_TOWER: Final = frozenset(WHOLE_TOWER_NAMES.split())
WITHOUT_TOWER: Final = frozenset({"Llama4ForConditionalGeneration"})
PADDED_TOWER_NAMES: Final = """
    Glm4vForConditionalGeneration Glm4vMoeForConditionalGeneration GlmOcrForConditionalGeneration
    InternS1ForConditionalGeneration InternVLChatModel
"""
PADDED_TOWER: Final = frozenset(PADDED_TOWER_NAMES.split())
POOL_OF_ALL_LAYERS_NAMES: Final = """
    BailingMoeV3VLForConditionalGeneration Gemma4ForConditionalGeneration Glm4vForConditionalGeneration
    Glm4vMoeForConditionalGeneration GlmOcrForConditionalGeneration MiniMaxM2ForCausalLM
    Mistral3ForConditionalGeneration NemotronHForCausalLM OPTForCausalLM Qwen2_5_VLForConditionalGeneration
"""
POOL_OF_ALL_LAYERS: Final = frozenset(POOL_OF_ALL_LAYERS_NAMES.split())
FROM_THEN_ON: Final = (("none", "0.5.8"), ("fp8-block", "0.5.8"), ("nvfp4", "0.5.8"))
PLAIN_LATER: Final = (("none", "0.5.12"), ("fp8-block", "0.5.8"), ("nvfp4", "0.5.8"))
PADDED_SINCE: Final[Mapping[str, Since]] = MappingProxyType({
    "Cohere2MoeForCausalLM": (("none", "0.5.19"),),
    "DeepseekV32ForCausalLM": PLAIN_LATER,
    "DeepseekV3ForCausalLM": PLAIN_LATER,
    "Gemma4ForConditionalGeneration": (("nvfp4", "0.5.13"),),
    "Glm4MoeForCausalLM": (("none", "0.5.15"), ("nvfp4", "0.5.8")),
    "GlmMoeDsaForCausalLM": PLAIN_LATER,
    "InternS2PreviewForConditionalGeneration": FROM_THEN_ON,
    "KimiK25ForConditionalGeneration": PLAIN_LATER,
    "MiniMaxM2ForCausalLM": (("nvfp4", "0.5.15"),),
    "Qwen3MoeForCausalLM": FROM_THEN_ON,
    "Qwen3NextForCausalLM": FROM_THEN_ON,
    "Qwen3VLMoeForConditionalGeneration": FROM_THEN_ON,
    "Qwen3_5MoeForConditionalGeneration": FROM_THEN_ON,
})  # fmt: skip
FEATURES_ON_HOPPER: Final = frozenset({"Qwen3VLForConditionalGeneration", "Qwen3VLMoeForConditionalGeneration"})
ATTENTION_ON_ALL_RANKS_NAMES: Final = """
    AXK1ForCausalLM AfmoeForCausalLM AriaForConditionalGeneration Cohere2MoeForCausalLM DbrxForCausalLM
    DeepseekForCausalLM DeepseekOCR2ForCausalLM DeepseekOCRForCausalLM Dots1ForCausalLM Ernie4_5_MoeForCausalLM
    Ernie4_5_VLMoeForConditionalGeneration FlexOlmoForCausalLM Gemma4ForCausalLM Gemma4ForConditionalGeneration
    GraniteMoeForCausalLM GraniteMoeHybridForCausalLM GraniteMoeSWAForCausalLM GraniteMoeSharedForCausalLM
    Grok1ForCausalLM Grok1ModelForCausalLM HYV3ForCausalLM HunYuanMoEV1ForCausalLM KimiLinearForCausalLM
    Lfm2MoeForCausalLM MixtralForCausalLM OlmoeForCausalLM SolarOpenForCausalLM
"""
ATTENTION_ON_ALL_RANKS: Final = frozenset(ATTENTION_ON_ALL_RANKS_NAMES.split())
WHOLE_COPIES_NAMES: Final = """
    InternS1ForConditionalGeneration InternVLChatModel KimiVLForConditionalGeneration Mistral3ForConditionalGeneration
    PhiMoEForCausalLM Qwen3OmniMoeForConditionalGeneration Step3VLForConditionalGeneration
    Step3p7ForConditionalGeneration
"""
WHOLE_COPIES: Final = frozenset(WHOLE_COPIES_NAMES.split())
TEXT_ALONE: Final = WITHOUT_TOWER | {"Gemma3ForConditionalGeneration", "Step3VLForConditionalGeneration"}


def sglang_ends(name: str) -> Ends:
    """Return what stages and ranks of a class hold of embeddings and output head in SGLang.

    >>> sglang_ends("LlamaForCausalLM").repeats_head, sglang_ends("Gemma3ForCausalLM").has_whole_table
    (True, True)
    """
    return Ends(
        repeats_table=name in TABLE_ON_EVERY_STAGE,
        repeats_head=name in HEAD_ON_EVERY_STAGE,
        has_whole_table=name in WHOLE_TABLE,
        more_heads=int(name in MORE_HEADS),
    )


def sglang_tower(name: str) -> SglangTower:
    """Return how ranks hold a class's tower in SGLang: Llama 4's is not built unless images are asked for.

    >>> [sglang_tower(name) for name in ("Llama4ForConditionalGeneration", "SmolVLMForConditionalGeneration")]
    ['none', 'whole']
    """
    if name in WITHOUT_TOWER:
        return "none"
    if name in PADDED_TOWER:
        return "padded"
    return "whole" if name in WHOLE_TOWER else "split"


def sglang_copies(name: str) -> SglangCopies:
    """Return which copies of the attention, that share experts, a class has in SGLang: split or whole ones, or none.

    >>> [sglang_copies(name) for name in ("Qwen3MoeForCausalLM", "PhiMoEForCausalLM", "MixtralForCausalLM")]
    ['any', 'whole', 'none']
    """
    if name in ATTENTION_ON_ALL_RANKS:
        return "none"
    return "whole" if name in WHOLE_COPIES else "any"


def reads_text_alone(name: str) -> bool:
    """Return whether SGLang serves text alone of a class, unless it is started with `--enable-multimodal`.

    >>> reads_text_alone("Gemma3ForConditionalGeneration"), reads_text_alone("Gemma4ForConditionalGeneration")
    (True, False)
    """
    return name in TEXT_ALONE


def pads_experts_since(name: str) -> Since:
    """Return by scheme since which SGLang a class's experts run in FlashInfer's kernels on Blackwell, which pad them.

    >>> pads_experts_since("Glm4MoeForCausalLM"), pads_experts_since("MixtralForCausalLM")
    ((('none', '0.5.15'), ('nvfp4', '0.5.8')), ())
    """
    return PADDED_SINCE.get(name, ())


def keeps_features(name: str) -> bool:
    """Return whether features of images stay on large GPUs of Hopper's, where SGLang serves a class on one server.

    >>> keeps_features("Qwen3VLMoeForConditionalGeneration"), keeps_features("Qwen2_5_VLForConditionalGeneration")
    (True, False)
    """
    return name in FEATURES_ON_HOPPER


def pools_all_layers(name: str) -> bool:
    """Return whether each pipeline stage has a cache for the layers of all stages: the class does not say which it has.

    >>> pools_all_layers("MiniMaxM2ForCausalLM"), pools_all_layers("Qwen3MoeForCausalLM")
    (True, False)
    """
    return name in POOL_OF_ALL_LAYERS
