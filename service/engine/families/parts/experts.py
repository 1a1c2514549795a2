"""A router over experts, as most configs state it and with what a family does otherwise.

Sources:
    vLLM 0.33 model files: mixtral.py, qwen2_moe.py, qwen3_moe.py, deepseek_v2.py.
"""

from collections.abc import Callable
from dataclasses import dataclass

from service.engine.config_reader import ConfigReader
from service.engine.errors import UnsupportedModelError
from service.engine.families.parts.sizes import nothing
from service.engine.families.parts.sparsity import SparsityRule, every_few
from service.engine.layers import MoeMlp

SizeRule = Callable[[ConfigReader], int]
SharedRule = Callable[[ConfigReader, int, int], int]  # width of one expert, shared width as usually stated
COUNT_NAMES = ("num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts")
TOP_K_NAMES = ("num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_topk", "moe_top_k", "moe_k")
SIZE_NAMES = ("moe_intermediate_size", "expert_hidden_dim", "expert_ffn_hidden_size", "intermediate_size")
SHARED_COUNT_NAMES = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert")
SHARED_SIZE_NAMES = ("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size")
WIDE = ("fp32", "float32")
CORRECTION_FLAGS = (
    "use_routing_bias",
    "use_moe_router_bias",
    "use_expert_bias",
    "moe_router_enable_expert_bias",
    "router_enable_expert_bias",
)


def shared_as_stated(_reader: ConfigReader, _size: int, stated: int) -> int:
    """Return the width of shared experts under its usual names."""
    return stated


def none_shared(_reader: ConfigReader, _size: int, _stated: int) -> int:
    """Return no shared expert, where a config states one that the model code does not build."""
    return 0


def no_scheme(_reader: ConfigReader) -> str:
    """Return that experts are stored like the rest."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """How a family's experts differ from the usual ones; fields as in `MoeMlp`, or rules that read them."""

    size: SizeRule | None = None
    shared: SharedRule = shared_as_stated
    has_shared_gate: bool = False
    has_wide_router: bool = False
    router_dtype_name: str = ""  # the field that may say whether the router is in fp32
    own_multiple: int = 1
    has_plain_activation: bool = True
    renormalizes: bool = True  # the chosen experts' shares, where `norm_topk_prob` is not stated
    has_own_routing: bool = False  # a function that the model brings
    computes_router_wide: bool = False
    min_rank_columns: int = 0
    dense_beside: SizeRule = nothing
    dense_count: int = 1
    has_expert_norms: bool = False
    num_idle: SizeRule = nothing
    scheme: Callable[[ConfigReader], str] = no_scheme
    has_biases: bool = False
    has_score_correction: bool = False  # whatever the config says
    splits_tokens: bool = False
    weighs_shared: bool = False
    sparsity: SparsityRule = every_few

    def read(self, reader: ConfigReader, num_experts: int, *, is_gated: bool) -> MoeMlp:
        """Return the experts that the config states.

        Raises:
            UnsupportedModelError: a token is to pass more of them than there are, which no router can choose.
        """
        size, shared = self._widths(reader)
        return MoeMlp(
            image_expert_size=reader.integer("image_expert_size", default=0),
            num_experts=num_experts,
            num_experts_per_tok=_per_token(reader, num_experts + self.num_idle(reader)),
            moe_intermediate_size=size,
            shared_expert_intermediate_size=shared,
            has_shared_gate=shared > 0 and self.has_shared_gate,
            has_wide_router=self._has_wide_router(reader),
            own_multiple=self.own_multiple,
            is_plain=self.has_plain_activation and not self.has_own_routing and self._is_common_routing(reader),
            computes_router_wide=self.computes_router_wide,
            min_rank_columns=self.min_rank_columns,
            latent_size=reader.integer("moe_latent_size", "routed_expert_hidden_size", default=0),
            has_latent_norm=reader.flag("latent_moe_use_norm"),
            dense_intermediate_size=self.dense_beside(reader),
            dense_count=self.dense_count,
            has_expert_norms=self.has_expert_norms,
            num_idle_experts=self.num_idle(reader),
            is_gated=is_gated,
            expert_scheme=self.scheme(reader),
            has_bias=self.has_biases,
            has_router_bias=self.has_biases,
            has_score_correction=_states_correction(reader) or self.has_score_correction,
            splits_tokens=self.splits_tokens,
            num_sinks=reader.integer(*SHARED_COUNT_NAMES, default=0) if self.weighs_shared else 0,
        )

    def _widths(self, reader: ConfigReader) -> tuple[int, int]:
        """Return the columns of one expert, and of all shared ones together."""
        stated = reader.positive(*SIZE_NAMES)
        shared = reader.integer(*SHARED_COUNT_NAMES, default=0) * stated
        shared = reader.integer(*SHARED_SIZE_NAMES, default=shared)
        size = self.size(reader) if self.size is not None else stated
        return size, self.shared(reader, size, shared)

    def _is_common_routing(self, reader: ConfigReader) -> bool:
        """Return whether fused kernels know how experts are chosen: their shares add up to 1, or are sigmoids alone.

        Sources:
            vLLM 0.33 `fused_moe/config.py` (`get_routing_method_type`), `fused_moe/experts/trtllm_bf16_moe.py`
            (`_supports_routing_method`).
        """
        scoring = str(reader.raw("scoring_func") or "")
        if scoring == "sqrtsoftplus":
            return False
        is_corrected = _states_correction(reader) or self.has_score_correction
        is_sigmoid = scoring == "sigmoid" or (not scoring and is_corrected)
        if reader.flag("norm_topk_prob", default=self.renormalizes):
            return is_sigmoid or not is_corrected
        return is_sigmoid and not is_corrected

    def _has_wide_router(self, reader: ConfigReader) -> bool:
        stated = reader.raw(self.router_dtype_name) if self.router_dtype_name else None
        return self.has_wide_router if stated is None else stated in WIDE


def _per_token(reader: ConfigReader, choices: int) -> int:
    """Return how many experts a token passes.

    Args:
        reader: the language model's part of a config.
        choices: that a router has.

    Raises:
        UnsupportedModelError: more than that.
    """
    chosen = reader.positive(*TOP_K_NAMES, default=1)
    if chosen > choices:
        name = next(name for name in TOP_K_NAMES if reader.raw(name) is not None)
        raise UnsupportedModelError(
            f"a token cannot pass {chosen} of {choices} experts",
            field=f"model_config.{name}",
            accepted=f"a whole number from 1 to {choices}, the number of experts",
        )
    return chosen


def _states_correction(reader: ConfigReader) -> bool:
    return reader.raw("topk_method") == "noaux_tc" or reader.flag(*CORRECTION_FLAGS)
