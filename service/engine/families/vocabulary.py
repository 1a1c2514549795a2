"""What adapters change of a class beside its layers' matrices, by versions of vLLM: embedding table and output head.

The buffers for both are allocated at start, whatever adapters change. A class that is not named keeps both as they
are, or has no rule for adapters here. Known are the versions of `since.py`; where one of them is the first with such
buffers, so is the release that it is the last patch of.

Source:
    vLLM `model_executor/models/` (`embedding_modules` of each class or the one it is built on), `lora/utils.py`
    (`get_supported_lora_modules`), of 0.8.5 to 0.33.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from service.engine.families.since import by_class

ADAPTED_SINCE: Final[Mapping[str, str]] = MappingProxyType({
    "0": """
        ApertusForCausalLM CwmForCausalLM DeciLMForCausalLM Ernie4_5ForCausalLM Exaone4ForCausalLM ExaoneForCausalLM
        GlmForCausalLM GraniteForCausalLM GraniteSWAForCausalLM HyperCLOVAXForCausalLM IQuestCoderForCausalLM
        InternLM3ForCausalLM Jais2ForCausalLM LLaMAForCausalLM LlamaForCausalLM MiniCPMForCausalLM MistralForCausalLM
        NemotronForCausalLM Phi3ForCausalLM SolarForCausalLM TeleChat2ForCausalLM TeleChat3ForCausalLM
        VaultGemmaForCausalLM
    """,
    "0.16": "Qwen3ForCausalLM Qwen3VLForConditionalGeneration",
})  # fmt: skip
# The embedding table alone: classes that say so, and those that run on the generic backend since then.
TABLE_SINCE: Final[Mapping[str, str]] = MappingProxyType({
    "0": "Cohere2ForCausalLM CohereForCausalLM SmolLM3ForCausalLM",
    "0.25": "Starcoder2ForCausalLM",
    "0.26": "Olmo2ForCausalLM OlmoForCausalLM",
    "0.29": "HunYuanDenseV1ForCausalLM Olmo3ForCausalLM",
    "0.32": """
        ArceeForCausalLM CwmForCausalLM GlmForCausalLM Jais2ForCausalLM PhiForCausalLM SeedOssForCausalLM
    """,
})  # fmt: skip
# Classes that were built on another's until then.
UNTIL: Final[Mapping[str, str]] = MappingProxyType({
    "MistralForCausalLM": "0.15", "CwmForCausalLM": "0.32", "GlmForCausalLM": "0.32", "Jais2ForCausalLM": "0.32",
})  # fmt: skip
# Classes around the layers of a language model alone, without its own class.
AROUND_LAYERS: Final = frozenset({
    "Idefics3ForConditionalGeneration", "Phi4MMForCausalLM", "SmolVLMForConditionalGeneration",
})  # fmt: skip
SINCE: Final = by_class(ADAPTED_SINCE)
TABLE: Final = by_class(TABLE_SINCE)


def adapted_class(name: str, inner: str) -> str:
    """Return the class whose vocabulary adapters change: that of the language model inside, where it is whole.

    >>> adapted_class("LlavaForConditionalGeneration", "LlamaForCausalLM")
    'LlamaForCausalLM'
    """
    return name if name in SINCE or name in AROUND_LAYERS else inner


def table_adapted(name: str) -> str:
    """Return from which version on adapters change the embedding table of a class alone; empty: never.

    >>> table_adapted("OlmoForCausalLM"), table_adapted("LlamaForCausalLM")
    ('0.26', '')
    """
    return TABLE.get(name, "")


def vocabulary_adapted(name: str) -> tuple[str, str] | None:
    """Return from which version on adapters change table and head of a class, and before which they do; None: never.

    >>> vocabulary_adapted("Qwen3ForCausalLM"), vocabulary_adapted("Qwen2ForCausalLM")
    (('0.16', ''), None)
    """
    return (SINCE[name], UNTIL.get(name, "")) if name in SINCE else None
