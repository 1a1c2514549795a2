"""A router over experts: every rank holds a part of each, or (expert parallelism) a part of them whole.

    expert elements    = experts x (3 or 2) x width x columns / ranks
    active elements    = chosen / experts of them
    buffers per token  = chosen x (max(columns, width) + max((2 or 1) x columns, width))

Sources:
    N. Shazeer et al., Outrageously large neural networks (arXiv:1701.06538); DeepSeek-AI, DeepSeekMoE
    (arXiv:2401.06066) for shared experts; vLLM 0.33 `model_executor/layers/fused_moe/layer.py`,
    `fused_moe/experts/triton_moe.py` (`workspace_shapes`), `quantization/utils/mxfp4_utils.py`.
"""

from dataclasses import dataclass, replace

from service.engine.arithmetic import ceil_div
from service.engine.formats.elements import SINGLE_BYTES
from service.engine.formats.matrix import Matrix, single, vector
from service.engine.inputs import Layout
from service.engine.layers.base import Divisor, FeedForward
from service.engine.layers.dense import network, takes_own_tokens
from service.engine.layers.shapes import NetworkShape, Routing, gated_columns


@dataclass(frozen=True, slots=True, kw_only=True)
class MoeMlp(FeedForward):
    """A router over experts, with optional shared experts that always run."""

    num_experts: int
    num_experts_per_tok: int
    moe_intermediate_size: int
    shared_expert_intermediate_size: int = 0  # summed over shared experts
    has_shared_gate: bool = False  # one logit that scales the shared expert
    own_multiple: int = 1  # to which a rank's share of an MXFP4 expert is rounded on Hopper
    min_rank_columns: int = 0  # and to this at least, once experts are cut
    latent_size: int = 0  # routed experts work in this width, projected in and out; 0 in the model's own
    has_latent_norm: bool = False
    dense_intermediate_size: int = 0  # a dense network beside the experts (Gemma 4, LongCat)
    dense_count: int = 1  # such networks
    image_expert_size: int = 0  # as many experts again of this width, for images (Ernie 4.5 VL)
    has_expert_norms: bool = False  # around the experts, with scales of their own (Gemma 4)
    num_idle_experts: int = 0  # that the router may pick and that pass a token on unchanged
    is_gated: bool = True
    has_bias: bool = False
    has_router_bias: bool = False
    has_wide_router: bool = False  # router kept in fp32
    computes_router_wide: bool = False  # in fp32, for which it is kept so where no kernel mixes types
    is_plain: bool = True  # activation and routing that every kernel knows
    expert_scheme: str = ""  # how quantized checkpoints store experts, where not as the rest: mxfp4
    hash_table_rows: int = 0  # tokens with fixed experts, as 32-bit numbers (DeepSeek V4's first layers)
    has_score_correction: bool = False  # one fp32 bias per expert, for balance
    splits_tokens: bool = False  # between ranks that hold whole experts and share attention: shared experts are whole
    num_sinks: int = 0  # shared experts that the router weighs as well, and that no checkpoint or loader quantizes

    @property
    def is_empty(self) -> bool:
        """Return that there are networks."""
        return False

    @property
    def routing(self) -> Routing | None:
        """Return how many experts there are, and how many of them a token passes."""
        return Routing(num_experts=self.num_experts, num_experts_per_tok=self.num_experts_per_tok)

    @property
    def shape(self) -> NetworkShape | None:
        """Return the experts, and what runs beside them; nothing of experts in another width, or of idle ones."""
        if self.latent_size or self.num_idle_experts:
            return None
        beside = self.shared_expert_intermediate_size + self.dense_count * self.dense_intermediate_size
        return NetworkShape(
            columns=gated_columns(beside, is_gated=self.is_gated),
            num_experts=self.num_experts,
            num_experts_per_tok=self.num_experts_per_tok,
            expert_columns=gated_columns(self.moe_intermediate_size, is_gated=self.is_gated),
        )

    def matrices(self, hidden_size: int, layout: Layout, prefix: str) -> list[Matrix]:
        """Return routed experts, router, and what runs beside them for every token.

        DeepSeek-V3 (arXiv:2412.19437, section 4.2: 58 such layers, 256 experts of 2,048 columns and one shared,
        8 chosen): 656.5 of its 671 billion parameters are experts.

        >>> layer = MoeMlp(
        ...     num_experts=256, num_experts_per_tok=8, moe_intermediate_size=2_048,
        ...     shared_expert_intermediate_size=2_048,
        ... )
        >>> matrices = layer.matrices(7_168, Layout(), "model.layers.3.")
        >>> round(58 * sum(matrix.elements for matrix in matrices if "experts" in matrix.module) / 1e9, 1)
        656.5
        """
        prefix += "mlp."
        # Beside a dense network of its own, the experts are not part of it by name either.
        experts = prefix.removesuffix("mlp.") if self.dense_intermediate_size else prefix
        return [
            *self._routed_experts(hidden_size, layout, experts),
            *self._router(hidden_size, prefix),
            *self._image_experts(hidden_size, layout, experts),
            *self._tables(prefix),
            *self._shared_experts(hidden_size, layout, prefix),
            *self._latent_projections(hidden_size, prefix),
            *self._dense_beside(hidden_size, layout, prefix),
            *self._scales(hidden_size, prefix),
        ]

    def _routed_experts(self, hidden_size: int, layout: Layout, prefix: str) -> list[Matrix]:
        """Return the experts of one rank."""
        columns = self._rank_columns(self.moe_intermediate_size, layout)
        if self._cuts(layout):
            columns = max(columns, self.min_rank_columns)
        return self._experts(columns, hidden_size, layout, prefix)

    def _image_experts(self, hidden_size: int, layout: Layout, prefix: str) -> list[Matrix]:
        if not self.image_expert_size:
            return []
        return self._experts(self._rank_columns(self.image_expert_size, layout), hidden_size, layout, prefix)

    @staticmethod
    def _cuts(layout: Layout) -> bool:
        """Return whether ranks hold a part of each expert: over all ranks of the replica."""
        return not layout.expert_parallel and layout.tensor_parallel_size * layout.data_parallel_size > 1

    def _rank_columns(self, columns: int, layout: Layout) -> int:
        ranks = layout.tensor_parallel_size * layout.data_parallel_size
        return ceil_div(columns, ranks) if self._cuts(layout) else columns

    def _experts(self, columns: int, hidden_size: int, layout: Layout, prefix: str) -> list[Matrix]:
        """Return a rank's experts of so many columns."""
        ranks = layout.tensor_parallel_size * layout.data_parallel_size
        count = ceil_div(self.num_experts, ranks) if layout.expert_parallel else self.num_experts
        count += layout.redundant_experts // ranks
        width, parts = self.latent_size or hidden_size, 2 if self.is_gated else 1
        into = Matrix(
            module=prefix + "experts.gate_up_proj",
            rows=parts * columns,
            columns=width,
            count=count,
            parts=parts,
            scheme=self.expert_scheme,
            biases=parts * columns if self.has_bias else 0,
            is_routed=True,
            inner_side="rows",
            own_multiple=self.own_multiple,
            pads_plain=self.is_plain,
            is_ungated=not self.is_gated,
        )
        out_of = Matrix(
            module=prefix + "experts.down_proj",
            rows=width,
            columns=columns,
            count=count,
            scheme=self.expert_scheme,
            biases=width if self.has_bias else 0,
            is_routed=True,
            inner_side="columns",
            own_multiple=self.own_multiple,
            pads_plain=self.is_plain,
            is_ungated=not self.is_gated,
        )
        return [into, out_of]

    @property
    def _choices(self) -> int:
        """Return the logits of the router."""
        return self.num_experts * (2 if self.image_expert_size else 1) + self.num_idle_experts

    def _router(self, hidden_size: int, prefix: str) -> list[Matrix]:
        gate = Matrix(
            module=prefix + "gate",
            rows=self._choices + self.num_sinks,
            columns=hidden_size,
            is_linear=False,
            element_bytes=SINGLE_BYTES if self.has_wide_router else None,
            is_wide_router=self.computes_router_wide,
            biases=self._choices if self.has_router_bias else 0,
        )
        return [gate]

    def _tables(self, prefix: str) -> list[Matrix]:
        """Return fixed choices of the first layers, and corrections of the logits."""
        tables = []
        if self.hash_table_rows:
            tables.append(single(prefix + "tid2eid", self.hash_table_rows * self.num_experts_per_tok))
        if self.has_score_correction:
            tables.append(single(prefix + "correction", self._choices))
        return tables

    def _shared_experts(self, hidden_size: int, layout: Layout, prefix: str) -> list[Matrix]:
        if not self.shared_expert_intermediate_size:
            return []
        is_whole = self.splits_tokens and takes_own_tokens(layout)
        columns = self.shared_expert_intermediate_size // (1 if is_whole else layout.tensor_parallel_size)
        shared = network(columns, hidden_size, prefix + "shared_experts.", is_gated=self.is_gated)
        if self.num_sinks:
            return [replace(matrix, is_linear=False) for matrix in shared]
        return [replace(matrix, scale_bytes=1) for matrix in shared] if self.expert_scheme else shared

    def _latent_projections(self, hidden_size: int, prefix: str) -> list[Matrix]:
        if not self.latent_size:
            return []
        return [
            Matrix(module=prefix + "fc1_latent_proj", rows=self.latent_size, columns=hidden_size),
            Matrix(module=prefix + "fc2_latent_proj", rows=hidden_size, columns=self.latent_size),
            vector(prefix + "latent_norm", self.latent_size if self.has_latent_norm else 0),
        ]

    def _dense_beside(self, hidden_size: int, layout: Layout, prefix: str) -> list[Matrix]:
        if not self.dense_intermediate_size:
            return []
        columns = self.dense_intermediate_size // layout.tensor_parallel_size
        dense = network(columns, hidden_size, prefix, is_gated=self.is_gated)
        return [replace(matrix, count=self.dense_count) for matrix in dense]

    def _scales(self, hidden_size: int, prefix: str) -> list[Matrix]:
        """Return norms around the experts with the router's and the experts' scales, and the shared gate."""
        scales = []
        if self.has_expert_norms:
            # three norms around the experts, the router's scale, and one scale per expert
            scales.append(vector(prefix + "expert_norms", 4 * hidden_size + self.num_experts))
        if self.has_shared_gate:
            scales.append(vector(prefix + "shared_expert_gate", hidden_size))
        return scales

    @property
    def divisors(self) -> tuple[Divisor, ...]:
        """Return the columns of an expert, rounded up on a rank, and those of what stands beside the experts."""
        shared = Divisor(
            name="shared expert columns",
            size=self.shared_expert_intermediate_size,
            fills_blocks=True,
            module="mlp.shared_experts.down_proj",
        )
        beside = Divisor(name="columns beside the experts", size=self.dense_intermediate_size)
        return (
            Divisor(
                name="expert columns",
                size=self.moe_intermediate_size,
                rule="rounded",
                fills_blocks=True,
                is_dealt_out=True,
                width=self.latent_size,
                module="mlp.experts.down_proj",
            ),
            *((shared,) if self.shared_expert_intermediate_size else ()),
            *((beside,) if self.dense_intermediate_size else ()),
        )

    @property
    def live_elements(self) -> int:
        """Return gate, up and product of the part that every token passes. [elements]."""
        return 3 * (self.shared_expert_intermediate_size + self.dense_intermediate_size)

    def workspace_elements(self, hidden_size: int, layout: Layout) -> int:
        """Return the two buffers of the routed experts. [elements].

            chosen experts x (max(inner, width) + max(2 x inner, width))

        Each token is copied once per chosen expert, on its way in and between the two products.
        """
        inner = ceil_div(self.moe_intermediate_size, 1 if layout.expert_parallel else layout.tensor_parallel_size)
        width = self.latent_size or hidden_size
        products = (2 if self.is_gated else 1) * inner
        return self.num_experts_per_tok * (max(inner, width) + max(products, width))

    @property
    def has_own_kernel(self) -> bool:
        """Return whether their MXFP4 kernel on Hopper is gpt-oss's own."""
        return self.own_multiple > 1

    @property
    def adapted_matrices(self) -> tuple[str, ...] | None:
        """Return that adapter buffers of experts have no rule."""
        return None

    @property
    def active_columns(self) -> int:
        """Return the columns of all experts that a token passes through."""
        return self.num_experts_per_tok * self.moe_intermediate_size + self.shared_expert_intermediate_size
