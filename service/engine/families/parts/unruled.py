"""Classes that the engine serves and that have no rule here: what of them is not known.

Sources:
    vLLM 0.33 `models/glm5next/common/attention.py` (`Glm5NextIndexerCache`, `Glm5NextTailCache`),
    `models/qwen4_exp/common/qsa_cache.py` (`QSAKeyStateCache`, `QSACompressedKeyCache`),
    `models/qwen4_exp/common/ngram_embedding.py`, `v1/core/kv_cache_planning.py` (`_get_packed_kv_cache_groups`).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_STATES: Final = "a ring of raw keys for each request, beside linear attention"
_INDEXER: Final = f"it keeps an indexer with one key for several tokens and {_STATES}"
_PLAN: Final = "how these share the pool's blocks is shown by no published plan"
UNKNOWN: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Glm5NextForConditionalGeneration": f"{_INDEXER}; {_PLAN}",
        "Qwen4ExpForConditionalGeneration": f"{_INDEXER}, and n-grams' embeddings that may lie in the host; {_PLAN}",
    }
)
