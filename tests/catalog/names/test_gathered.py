"""Names as conversions, hosts, drivers and buses write them; none is taken for another model or GPU."""

import pytest

from service.catalog.errors import NotInCatalogError
from service.catalog.names.unread import NO_ENTRY, NO_RULE, unread
from service.engine.families import REGISTRY
from tests.conftest import shared_catalog

CATALOG = shared_catalog()


@pytest.mark.parametrize(
    ("name", "model_id", "weight_format"),
    [
        ("nvidia/DeepSeek-R1-0528-NVFP4-v2", "deepseek-r1", "nvfp4"),
        ("amd/Llama-3.3-70B-Instruct-MXFP4-Preview", "llama-3.3-70b-instruct", "mxfp4"),
        ("QuantTrio/GLM-4.5-Air-AWQ-FP16Mix", "glm-4.5-air", "int4"),
        ("mistral_7b_v03", "mistral-7b-instruct-v0.3", None),
        ("llama-3.3-70b-versatile", "llama-3.3-70b-instruct", None),
        ("deepseek-ai/DeepSeek-R1-Zero", "deepseek-r1", None),
        ("openai/gpt-oss-safeguard-20b", "gpt-oss-20b", None),
        # As resellers write them: https://models.dev.
        ("workers-ai/@cf/meta/llama-3.1-8b-instruct-awq", "llama-3.1-8b-instruct", "int4"),
        ("databricks-gpt-oss-20b", "gpt-oss-20b", None),
        ("zai-org-glm-5-2", "glm-5.2", None),
        ("moonshotai/Kimi-K2.6-TEE", "kimi-k2.6", None),
        ("deepseek-ai/DeepSeek-V3-1", "deepseek-v3.1", None),
        ("/root/.cache/modelscope/hub/Qwen/Qwen2___5-7B-Instruct", "qwen2.5-7b-instruct", None),
        ("unsloth/gemma-1.1-7b-it-bnb-4bit", "gemma-7b", "int4"),
    ],
)
def test_a_conversion_s_edition_and_a_host_s_words_name_no_other_model(
    name: str, model_id: str, weight_format: str | None
) -> None:
    reading = CATALOG.called_models.read(name)

    assert (reading.model_id, reading.weight_format) == (model_id, weight_format)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("Qwen/Qwen2.5-Omni-3B", "qwen2.5-"),  # shares no shape with any
        ("Qwen/Qwen3-Embedding-8B", "qwen3-8b"),
        ("nvidia/gpt-oss-120b-Eagle3", "gpt-oss-120b"),
        ("01-ai/Yi-Coder-14B", "yi-coder-9b-chat"),
        ("facebook/opt-25b", "opt-30b"),
        ("LGAI-EXAONE/EXAONE-4.0.1-32B", "exaone-4.0-32b"),
        ("paligemma2-28b-pt-1344", "paligemma2-28b-pt-"),
        ("Qwen/Qwen3-4B-Instruct-1M", "qwen3-4b"),
        ("unsloth/Qwen3-Coder-480B-A35B-Instruct-1M-GGUF", "qwen3-coder-480b-a35b-instruct"),
        ("nvidia/Llama-3_3-Nemotron-Super-49B-v2", "llama-3.3-nemotron-super-49b-v1"),
    ],
)
def test_another_model_is_refused_with_the_nearest_first(name: str, nearest: str) -> None:
    with pytest.raises(NotInCatalogError) as refusal:
        CATALOG.called_models.read(name)

    assert refusal.value.suggestions[0].startswith(nearest)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("databricks-claude-haiku-4-5", "behind an API alone"),
        ("duo-chat-sonnet-4-5", "behind an API alone"),
        ("internlm/internlm-xcomposer2d5-7b", "of a class that no rule here reads"),
        ("z-ai-glm-5-turbo", "behind an API alone"),
        ("QuantTrio/GLM-4.6-GPTQ-Int4-Int8Mix", "int4 and int8mix at once"),  # no word says which have 8 bits
    ],
)
def test_what_nobody_can_size_by_its_name_is_refused_with_the_reason(name: str, why: str) -> None:
    with pytest.raises(NotInCatalogError, match=why):
        CATALOG.called_models.read(name)


def test_databricks_s_own_models_keep_their_name() -> None:
    assert CATALOG.called_models.read("databricks/dbrx-instruct").model_id == "dbrx-instruct"


@pytest.mark.parametrize("name", ["adept/persimmon-8b-chat", "xverse/XVERSE-7B-Chat", "lmms-lab/Florence-2-base"])
def test_a_family_without_an_entry_has_no_neighbour(name: str) -> None:
    with pytest.raises(NotInCatalogError) as refusal:
        CATALOG.called_models.read(name)

    assert refusal.value.suggestions == ()


@pytest.mark.parametrize(("typed", "nearest"), [("lama-3.3-75b", "llama-3.3-70b-instruct"), ("quen3-33b", "qwen3-32b")])
def test_a_misspelt_family_is_still_the_family(typed: str, nearest: str) -> None:
    with pytest.raises(NotInCatalogError) as refusal:
        CATALOG.called_models.read(typed)

    assert refusal.value.suggestions[0] == nearest


@pytest.mark.parametrize(
    ("line", "gpu_id"),
    [
        ("3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)", "h100-sxm-80gb"),
        ("17:00.0 VGA compatible controller: NVIDIA Corporation AD102 [GeForce RTX 4090] (rev a1)", "rtx-4090"),
        ("3D controller [0302]: NVIDIA Corporation TU104GL [Tesla T4] [10de:1eb8] (rev a1)", "t4"),
        (
            "Processing accelerators: Advanced Micro Devices, Inc. [AMD/ATI] Aqua Vanjaram [Instinct MI300X] (rev 02)",
            "mi300x",
        ),
    ],
)
def test_a_gpu_is_read_as_its_bus_names_it(line: str, gpu_id: str) -> None:
    assert CATALOG.called_gpus.read(line).gpu_id == gpu_id


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "h100-sxm-80gb"),
        ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", "a100-sxm-40gb"),
        ("h200 mig-1g.18gb", "h200-sxm-141gb"),
        ("0.5 h100", "h100-sxm-80gb"),
        ("half an H200", "h200-sxm-141gb"),
        ("1/2 x l4", "l4"),
        ("h100:0.5", "h100-sxm-80gb"),
        ("nvidia-h100 x 0.25", "h100-sxm-80gb"),
    ],
)
def test_a_slice_is_refused_with_the_gpu_it_is_a_part_of(name: str, whole: str) -> None:
    with pytest.raises(NotInCatalogError, match="MIG slice") as refusal:
        CATALOG.called_gpus.read(name)

    assert refusal.value.suggestions[0] == whole


@pytest.mark.parametrize("name", ["h100,l4", "H100 + L4", "h100 and l4", "4xH100;l4"])
def test_a_list_is_refused_with_what_it_lists_and_who_takes_lists(name: str) -> None:
    with pytest.raises(NotInCatalogError, match=r"several types of GPU.*/recommend") as refusal:
        CATALOG.called_gpus.read(name)

    assert refusal.value.suggestions[:2] == ("h100-sxm-80gb", "l4")


@pytest.mark.parametrize(
    ("typed", "nearest"),
    [
        ("h10", "h100-sxm-80gb"),
        ("h1000", "h100-sxm-80gb"),
        ("h201", "h200-sxm-141gb"),
        ("h20o", "h200-sxm-141gb"),
        ("h100-pice", "h100-pcie-80gb"),
        ("h100 swm", "h100-sxm-80gb"),
        ("mi320x", "mi325x"),
        ("rtx4009", "rtx-4090"),
        ("b210", "b200-sxm-180gb"),
        ("a6001", "rtx-a6000"),
    ],
)
def test_a_slip_of_the_finger_is_told_the_gpu_that_was_meant(typed: str, nearest: str) -> None:
    with pytest.raises(NotInCatalogError) as refusal:
        CATALOG.called_gpus.read(typed)

    assert refusal.value.suggestions[0] == nearest


@pytest.mark.parametrize(("typed", "nearest"), [("gpt-oss-20", "gpt-oss-20b"), ("qwen3-33b", "qwen3-32b")])
def test_a_last_figure_is_taken_for_a_size(typed: str, nearest: str) -> None:
    with pytest.raises(NotInCatalogError) as refusal:
        CATALOG.called_models.read(typed)

    assert refusal.value.suggestions[0] == nearest


@pytest.mark.parametrize(
    ("name", "model_id"), [("Qwen25-7B-Instruct", "qwen2.5-7b-instruct"), ("llama31-8b", "llama-3.1-8b-instruct")]
)
def test_a_point_that_was_left_out_stands_between_two_figures_of_a_version(name: str, model_id: str) -> None:
    assert CATALOG.called_models.read(name).model_id == model_id


@pytest.mark.parametrize(
    "name",
    [
        "Qwen/Qwen3-ForcedAligner-0.6B",  # aligns speech
        "Alibaba-NLP/gme-Qwen2-VL-2B-Instruct",  # embeds
        "MAGAer13/mplug-owl2-llama2-7b",  # sees
        "google/gemma-4-E2B-it-qat-mobile-ct",  # in another format than the name of one
        "Qwen/Qwen-VL-Chat",  # QwenVLForConditionalGeneration, which vLLM 0.33 does not name
        "qwen2.5-vy-7b-instruct",  # vl, misspelt
    ],
)
def test_what_a_base_s_name_stands_beside_is_not_the_base(name: str) -> None:
    with pytest.raises(NotInCatalogError):
        CATALOG.called_models.read(name)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("deepseek-vv3", "deepseek-v3"),
        ("midtral-8x7b-v0.1", "mixtral-8x7b-v0.1"),
        ("gt-oss-20b", "gpt-oss-20b"),
        ("wqq-32b", "qwq-32b"),
        ("tep3", "step3"),
        ("qwwen2.5-7b-instruct", "qwen2.5-7b-instruct"),
    ],
)
def test_a_slip_of_the_finger_has_what_was_meant_first(typed: str, meant: str) -> None:
    with pytest.raises(NotInCatalogError) as refusal:
        CATALOG.called_models.read(typed)

    assert refusal.value.suggestions[0] == meant


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        # What is known to be something else is no slip for a family that it is spelled like.
        ("deepseek-ai/Janus-Pro-7B", ()),
        ("stepfun-ai/GOT-OCR-2.0-hf", ()),
        ("sentence-transformers/all-MiniLM-L6-v2", ()),
        ("inclusionAI/LLaDA2.0-mini", ()),
        ("jinaai/jina-vlm", ()),
        ("lmsys/longchat-7b-v1.5-32k", ()),
        ("Salesforce/codegen25-7b-multi_P", ()),
        ("meetkai/functionary-small-v3.2", ()),
        ("katanemo/Arch-Function-3B", ()),
        ("perplexity/sonar-reasoning-pro", ()),
        # One of another generation has none of gpt2's.
        ("openai/gpt-4o-mini", ("gpt-oss-120b",)),
        ("Qwen/Qwen-Image", ("qwen3-32b",)),
        # Versions are compared by their line and generation, sizes as figures, and the rest by its letters.
        ("meta-llama/Llama-3.2-11B-Vision-Instruct", ("llama-3.1-8b-instruct",)),
        ("llama3.2-vision:11b", ("llama-3.1-8b-instruct",)),
        ("deepseek v5", ("deepseek-v4-pro",)),
        ("kimi k2.8", ("kimi-k2.7-code",)),
        ("minimax m4", ("minimax-m3",)),
        ("Qwen/Qwen3-72B", ("qwen2.5-72b",)),
        ("Qwen3-14B-Instruct-2507", ("qwen3-14b",)),
        ("AIDC-AI/Ovis2-34B", ("ovis2-16b",)),
        ("yi:34b-chat-v1.5-q4_K_M", ("yi-1.5-34b-chat",)),
    ],
)
def test_the_first_neighbour_is_the_family_s_own_nearest_or_there_is_none(name: str, nearest: tuple[str, ...]) -> None:
    with pytest.raises(NotInCatalogError) as refusal:
        CATALOG.called_models.read(name)

    assert refusal.value.suggestions[:1] == nearest


@pytest.mark.parametrize(
    ("name", "class_name"),
    [
        ("voxtral small 24b 2507", "VoxtralForConditionalGeneration"),
        ("voxtral mini 4b realtime 2602", "VoxtralRealtimeGeneration"),
        ("ultravox v 0.5 llama 3.1 8b", "UltravoxModel"),
        ("granite speech 3.3 8b", "GraniteSpeechForConditionalGeneration"),
        ("molmo 7b d 0924", "MolmoForCausalLM"),
        ("idefics 3 8b", "Idefics3ForConditionalGeneration"),
        ("blip 2 opt 2.7b", "Blip2ForConditionalGeneration"),
        ("hy 4 preview", "HYV4ForCausalLM"),
        ("hyperclovax seed omni 8b", "HCXVisionV2ForCausalLM"),
        ("hyperclovax seed vision instruct 3b", "HCXVisionForCausalLM"),
        ("mimo v 2 omni", "MiMoV2OmniForCausalLM"),
        ("beam", "BeamForCausalLM"),
        ("rnj 1 instruct", "Rnj1ForCausalLM"),
        ("isaac 0.1", "IsaacForConditionalGeneration"),
        ("llava onevision 2 8b", "LlavaOnevision2ForConditionalGeneration"),
        ("kanana 1.5 v 3b instruct", "KananaVForConditionalGeneration"),
        ("unlimited ocr", "UnlimitedOCRForCausalLM"),
        ("moondream 3 preview", "Moondream3ForCausalLM"),
        ("intern s 1 pro", "InternS1ProForConditionalGeneration"),
        ("k 2 horizon", "K2HorizonForCausalLM"),
        ("qwen 4", "Qwen4ExpForCausalLM"),
        ("muse spark", "MuseSparkForConditionalGeneration"),
        ("step 5 preview", "Step5ForCausalLM"),
    ],
)
def test_a_class_that_is_read_is_not_said_to_have_no_rule(name: str, class_name: str) -> None:
    """The classes are those of vLLM 0.33's registry."""
    assert unread(name.split()) == (NO_ENTRY if class_name in REGISTRY.families else NO_RULE)
