"""GLM 4 to 5, dense and with experts.

Sources:
    vLLM 0.33 `model_executor/models/`: glm4.py, glm4_moe.py, glm4_moe_lite.py; `models/deepseek_v32` (GLM 5).
"""

from typing import Final

from service.engine.families.deepseek import SPLIT_TOKENS_THROUGHOUT
from service.engine.families.parts.attention import full_only
from service.engine.families.parts.biases import output_apart
from service.engine.families.parts.experts import Experts
from service.engine.families.parts.family import Family
from service.engine.families.parts.feed_forward import FeedForward
from service.engine.families.parts.latent import latent, sparse_latent
from service.engine.families.parts.mtp import Draft, like_the_last
from service.engine.families.parts.norms import on_heads_where
from service.engine.families.parts.rotary import rotating
from service.engine.families.parts.sparsity import first_dense

_FIRST_DENSE: Final = FeedForward(experts=Experts(sparsity=first_dense))
_CORRECTED: Final = FeedForward(experts=Experts(has_wide_router=True, has_score_correction=True, sparsity=first_dense))
_BIASES: Final = output_apart(default=False)

FAMILIES: Final = (
    Family(
        classes=("GlmForCausalLM",),
        attention=full_only,
        feed_forward=_FIRST_DENSE,
        biases=_BIASES,
        rotary=rotating(0.5),
    ),
    Family(
        classes=("Glm4ForCausalLM",),
        model_types=("glm4",),
        attention=full_only,
        feed_forward=_FIRST_DENSE,
        biases=_BIASES,
        norms_per_layer=4,
        rotary=rotating(0.5),
        runs_in_float16=False,
    ),
    Family(
        classes=("Glm4MoeForCausalLM",),
        model_types=("glm4_moe",),
        attention=full_only,
        feed_forward=_CORRECTED,
        biases=_BIASES,
        head_norms=on_heads_where("use_qk_norm"),
        rotary=rotating(0.5),
        draft=Draft(build=like_the_last),
    ),
    Family(
        classes=("Glm4MoeLiteForCausalLM",),
        attention=latent,
        feed_forward=_CORRECTED,
        draft=Draft(build=like_the_last),
    ),
    Family(
        classes=("GlmMoeDsaForCausalLM",),
        attention=sparse_latent,
        feed_forward=SPLIT_TOKENS_THROUGHOUT,
        draft=Draft(build=like_the_last),
        prefers_fp8_cache=True,
    ),
)
