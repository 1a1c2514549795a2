"""The versions of vLLM from which adapters change the embedding table and the output head of a class as well.

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

ADAPTED_SINCE: Final[Mapping[str, str]] = MappingProxyType({
    "0": """
        ApertusForCausalLM Cohere2ForCausalLM CohereForCausalLM CwmForCausalLM DeciLMForCausalLM Ernie4_5ForCausalLM
        Exaone4ForCausalLM ExaoneForCausalLM GlmForCausalLM GraniteForCausalLM HyperCLOVAXForCausalLM
        IQuestCoderForCausalLM InternLM3ForCausalLM Jais2ForCausalLM LLaMAForCausalLM LlamaForCausalLM
        MiniCPMForCausalLM MistralForCausalLM NemotronForCausalLM Phi3ForCausalLM SmolLM3ForCausalLM SolarForCausalLM
        TeleChat2ForCausalLM TeleChat3ForCausalLM VaultGemmaForCausalLM
    """,
    "0.16": "Qwen3ForCausalLM",
    "0.25": "GPTBigCodeForCausalLM Starcoder2ForCausalLM",
    "0.26": "Olmo2ForCausalLM OlmoForCausalLM",
    "0.29": "HunYuanDenseV1ForCausalLM Olmo3ForCausalLM",
    "0.32": "ArceeForCausalLM GPTNeoXForCausalLM PhiForCausalLM SeedOssForCausalLM",
})  # fmt: skip
SINCE: Final[Mapping[str, str]] = MappingProxyType(
    {name: version for version, names in ADAPTED_SINCE.items() for name in names.split()}
)
# Classes that were built on another's until then.
UNTIL: Final[Mapping[str, str]] = MappingProxyType({"MistralForCausalLM": "0.15"})


def vocabulary_adapted(name: str) -> tuple[str, str] | None:
    """Return from which version on adapters change the vocabulary of a class, and before which they do; None: never.

    >>> vocabulary_adapted("Qwen3ForCausalLM"), vocabulary_adapted("Qwen2ForCausalLM")
    (('0.16', ''), None)
    """
    return (SINCE[name], UNTIL.get(name, "")) if name in SINCE else None
