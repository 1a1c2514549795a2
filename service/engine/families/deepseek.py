"""DeepSeek 1 to 3.2: latents with experts, from 3.2 on with an indexer.

Sources:
    vLLM 0.33 `model_executor/models/deepseek_v2.py`, `models/deepseek_v32/nvidia/model.py`.
"""

from dataclasses import replace
from typing import Final

from service.engine.families.parts.attention import full_only
from service.engine.families.parts.dense import Dense
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.latent import latent_if_stated, sparse_latent
from service.engine.families.parts.mtp import Draft, like_the_last
from service.engine.families.parts.sparsity import first_dense

SPLIT_TOKENS: Final = FeedForward(experts=Experts(splits_tokens=True, sparsity=first_dense))
# The first, dense layers are whole as well where ranks take different tokens to the experts.
SPLIT_TOKENS_THROUGHOUT: Final = FeedForward(
    dense=Dense(splits_tokens=True),
    experts=Experts(splits_tokens=True, has_score_correction=True, sparsity=first_dense),
)

FAMILIES: Final = (
    Family(
        classes=("DeepseekForCausalLM",),
        attention=full_only,
        feed_forward=FeedForward(experts=Experts(renormalizes=False, sparsity=first_dense)),
    ),
    Family(
        classes=("DeepseekV2ForCausalLM",),
        model_types=("deepseek_v2",),
        attention=latent_if_stated,
        feed_forward=FeedForward(experts=replace(SPLIT_TOKENS.experts, renormalizes=False)),
    ),
    Family(
        classes=("DeepseekV3ForCausalLM",),
        model_types=("deepseek_v3",),
        attention=latent_if_stated,
        feed_forward=SPLIT_TOKENS,
        draft=Draft(build=like_the_last),
    ),
    Family(
        classes=("DeepseekV32ForCausalLM",),
        attention=sparse_latent,
        feed_forward=SPLIT_TOKENS_THROUGHOUT,
        draft=Draft(build=like_the_last),
    ),
)
