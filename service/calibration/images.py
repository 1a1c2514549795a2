"""What images of vLLM install beside its package: FlashInfer, which samples where it is, up to 0.11.0.

Sources:
    vLLM 0.11.0 `docker/Dockerfile`, `v1/sample/ops/topk_topp_sampler.py`; NVIDIA's release notes of its own images,
    docs.nvidia.com/deeplearning/frameworks/vllm-release-notes/rel-25-10.html.
"""

import re
from dataclasses import replace
from typing import Final

from service.catalog.engine_rules import version_numbers
from service.engine import EngineRules

FLASHINFER_BYTES: Final = 14  # of one logit, as in any version that profiles masked sampling
PLAIN_SINCE: Final = (0, 11, 1)  # whose image samples as the package does
IMAGE: Final = re.compile(r"\bvllm-openai:|\.nv\d\d\.\d\d\b")  # in what a source says of its version


def as_installed(rules: EngineRules, version: str | None, words: str) -> EngineRules:
    """Return the rules of a version as its image runs, where a source says that it ran one.

    Args:
        rules: of the package alone.
        version: of the engine; None: not stated.
        words: in which the source states it.
    """
    is_older = version is not None and version_numbers(version) < PLAIN_SINCE
    return replace(rules, sampler_bytes_per_logit=FLASHINFER_BYTES) if is_older and IMAGE.search(words) else rules
