"""What is no model that generates text is refused with what it is, and no model of the catalog is taken for it."""

import pytest

from service.catalog.errors import NotInCatalogError
from service.catalog.names.closed import closed
from service.catalog.names.kinds import kind_of
from service.catalog.names.words import words_of
from service.catalog.snapshot import Snapshot


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("BAAI/bge-m3", "embeddings"),
        ("Qwen/Qwen3-Embedding-8B", "embeddings"),
        ("intfloat/multilingual-e5-large-instruct", "embeddings"),
        ("BAAI/bge-reranker-v2-m3", "reranker"),
        ("openai/whisper-large-v3", "speech"),
        ("hexgrad/Kokoro-82M", "speech"),
        ("OuteAI/Llama-OuteTTS-1.0-1B", "speech"),
        ("IndexTeam/IndexTTS-2.5", "speech"),
        ("OpenMOSS-Team/MOSS-TTSD-v1.0", "speech"),
        ("OpenMOSS-Team/MOSS-SoundEffect", "speech"),
        ("OpenMOSS-Team/MOSS-VoiceGenerator", "speech"),
        ("fishaudio/s2-pro", "speech"),
        ("stabilityai/stable-audio-open-1.0", "speech"),
        ("MiniMaxAI/MiniMax-H3", "video"),
        ("HKUSTAudio/Llasa-8B", "speech"),
        ("kyutai/stt-2.6b-en", "speech"),
        ("LiquidAI/LFM2-Audio-1.5B", "speech"),
        ("tencent/HunyuanImage-3.0-Instruct", "images"),
        ("tencent/HunyuanVideo-1.5", "images"),
        ("black-forest-labs/FLUX.1-dev", "images"),
        ("stabilityai/stable-diffusion-3.5-large", "images"),
        ("google-bert/bert-base-uncased", "an encoder"),
        ("google/flan-t5-xl", "an encoder"),
        ("facebook/dinov2-large", "encoder of images"),
        ("nvidia/gpt-oss-120b-Eagle3", "a draft"),
        ("amd/PARD-Llama-3.2-1B", "a draft"),
        ("ibm-ai-platform/llama3-8b-accelerator", "a draft"),
        ("lmsys/DeepSeek-R1-NextN", "a draft"),
        ("vtabbott/Qwen2.5-7B-Instruct-loras", "an adapter"),
        ("RLHFlow/ArmoRM-Llama3-8B-v0.1", "a model that scores"),
        ("someone/Llama-3.1-8B-Instruct-lora", "an adapter"),
        ("google/gemini-2.5-pro", "behind an API"),
        ("GSAI-ML/LLaDA-8B-Instruct", "diffusion"),
        ("meta-llama/Llama-3.2-11B-Vision-Instruct", "up to 0.10.2"),
        ("baichuan-inc/Baichuan2-13B-Chat", "no longer serve"),
        ("garage-bAInd/Open-Platypus", "a set of data"),
        ("llamafactory/tiny-random-Llama-4", "random weights"),
        ("ISTA-DASLab/Llama-2-7b-AQLM-2Bit-1x16-hf", "in a format that no rule"),
        ("nm-testing/Llama-2-7b-pruned2.4-Marlin_24", "thinned out"),
        ("allenai/Molmo-7B-D-0924", "without an entry"),
        ("deepseek-ai/Janus-Pro-7B", "a class that no rule here reads"),
        ("nvidia/Eagle2.5-8B", "without an entry"),
        ("moonshotai/Kimi-Audio-7B-Instruct", "without an entry"),
        ("nvidia/audio-flamingo-3-hf", "without an entry"),
        ("nvidia/Eagle2-9B", "a class that no rule here reads"),
        ("Eco-Tech/GLM-5-w4a8", "in a format that no rule"),
        ("mistralrs-community/gemma-4-E4B-it-UQFF", "UQFF"),
        ("Aratako/Ministral-3-3B-Instruct-2512-TextOnly", "language_model_only"),
        ("qwen-max-0919", "behind an API"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "behind an API"),
        ("openrouter/openai/o3", "behind an API"),
        ("mistral-medium-2508", "behind an API"),
        ("seed-1-6-flash-250715", "behind an API"),
        ("z-ai/glm-5-turbo", "behind an API"),
        ("openrouter/auto", "a route of a service"),
        ("imagen-4.0-ultra-generate-001", "images"),
        ("us.meta.llama3-2-90b-instruct-v1:0", "up to 0.10.2"),
        ("EssentialAI/rnj-1-instruct", "without an entry"),
        ("hfl/llama-3-chinese-8b", "tells llama 3 8b, and 'chinese'"),
        ("baidu/ERNIE-4.5-300B-A47B-FP8-Paddle", "Paddle's own format"),
        ("meta-llama/Llama-Guard-3-11B-Vision", "up to 0.10.2"),
        ("Zyphra/Zamba2-7B-Instruct", "without an entry"),
        ("tiiuae/Falcon-H1-Tiny-90M-Instruct", "without an entry"),
        ("Skywork/Skywork-R1V3-38B", "without an entry"),
        ("deepcogito/cogito-v2-preview-deepseek-671B-MoE", "without an entry"),
        ("tencent/Hunyuan-MT-7B", "without an entry"),
        ("skt/A.X-4.0", "without an entry"),
        ("skt/A.X-4.0-VL-Light", "a class that no rule here reads"),
        ("allenai/SERA-32B", "its context is not at hand"),
        ("nvidia/AceMath-72B-Instruct", "its context is not at hand"),
        ("stepfun-ai/Step-Audio-2-mini", "a class that no rule here reads"),
        ("XiaomiMiMo/MiMo-Audio-7B-Instruct", "a class that no rule here reads"),
        ("meituan-longcat/LongCat-Flash-Lite", "a class that no rule here reads"),
        ("google/electra-large-discriminator", "an encoder"),
        ("zai-org/glm-4-9b-chat-1m", "tells glm 4 9b, and '1m'"),
    ],
)
def test_a_model_that_is_not_sized_is_told_what_it_is(catalog: Snapshot, name: str, what: str) -> None:
    with pytest.raises(NotInCatalogError, match=what):
        catalog.called_models.read(name)


@pytest.mark.parametrize(
    "repo",
    ["KAT-Coder-V2.5-Dev", "GLM-4.7-Flash-REAP-23B-A3B", "Qwen3.5-4B-Claude-distill", "reka-edge-2603", "gpt4all-j"],
)
def test_what_a_hub_holds_is_not_told_to_be_sold_alone(repo: str) -> None:
    # huggingface.co holds the weights of each; they are named like what services sell, or for a teacher
    assert closed(words_of(repo)) is None


def test_a_publisher_of_embeddings_has_chats_and_one_of_a_model_no_longer_served_others() -> None:
    """Salesforce's SFR-Iterative-DPO is a chat, and Snowflake's Arctic-Text2SQL a Qwen2.5, by their cards."""
    assert "embeddings" in (kind_of(words_of("SFR-Embedding-Mistral")) or "")
    assert kind_of(words_of("SFR-Iterative-DPO-LLaMA-3-8B-R")) is None
    assert kind_of(words_of("arctic")) is not None
    assert kind_of(words_of("Arctic-Text2SQL-R1-7B")) is None
