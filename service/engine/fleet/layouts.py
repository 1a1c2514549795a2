"""Which parallel layouts the serving engine would start, by the divisions it insists on."""

from dataclasses import dataclass

from service.engine.derived import derived
from service.engine.engines.device import REFERENCE, Device
from service.engine.engines.kernel import AskedCache
from service.engine.errors import UnsupportedLayoutError
from service.engine.fleet.staged import check_stages
from service.engine.fleet.whole_blocks import blocked_columns, blocked_outputs, check_blocks
from service.engine.fleet.wide import check_exchange
from service.engine.formats.quantization import Quantization
from service.engine.inputs import Layout
from service.engine.layers import Architecture, Divisor, padded_vocabulary
from service.engine.memory.kernels import runs_over_ranks
from service.engine.memory.own_parts import as_held, kernels_as_run


@dataclass(frozen=True, slots=True, kw_only=True)
class Divisions:
    """Sizes that tensor parallelism must divide, and the name a person knows them by."""

    exact: tuple[tuple[str, int], ...]  # must be divisible by TP
    columns: tuple[tuple[str, int], ...]  # of networks beside the attention: the same, or by the ranks of all copies
    repeated: tuple[tuple[str, int], ...]  # divisible by TP, or TP by them
    num_experts: int  # 0 without experts
    dealt: tuple[tuple[str, int], ...]  # of experts, cut over the ranks of all copies of the attention
    filled: tuple[Divisor, ...]  # of which a rank holds whole quantization blocks
    outputs: tuple[Divisor, ...]  # of the attention, of which a rank of one copy does


def check_layout(
    architecture: Architecture, quantization: Quantization, layout: Layout, device: Device = REFERENCE
) -> None:
    """Raise UnsupportedLayoutError, saying which size does not divide, if the engine would refuse to start.

    Args:
        architecture: the model.
        quantization: how its weights are stored.
        layout: how one replica is spread.
        device: the GPU's generation and the engine's version.

    Sources:
        vLLM 0.33 ModelConfig.verify_with_parallel_config (heads),
        distributed.utils.divide (matrices, heads of towers, tables of words), validate_fp8_block_shape,
        validate_fp8_block_shape_moe and refine_fp8_moe_block_shape (quantization blocks), FusedMoEConfig.__post_init__
        ("assert self.intermediate_size % tp_size == 0", of the ranks of all copies; 0.10.2 the same).
        SGLang 0.5.23 `models/deepseek_v2.py` (dense parts and shared experts: `parallel_group="tp"`, of all copies).
    """
    check_exchange(architecture, quantization, layout, device)
    tp = layout.tensor_parallel_size
    held = as_held(architecture, device.plan)
    padded = dict(kernels_as_run(architecture, quantization, device).storage.inner_of)
    divisions = _divisions(held, quantization)
    joined = _joined_ranks(architecture, layout, device)
    for name, size in divisions.exact:
        if size % tp:
            raise _refusal(f"tensor_parallel_size {tp} does not divide the model's {size} {name}", size)
    for name, size in divisions.repeated:
        if size % tp and tp % size:
            raise _refusal(
                f"tensor_parallel_size {tp} neither divides the model's {size} {name} nor is divided by them", size
            )
    _check_vocabulary(architecture, tp, device)
    cut = 1 if layout.expert_parallel else tp * layout.data_parallel_size
    _check_columns(divisions.dealt, cut, tp)
    _check_columns(divisions.columns, joined, tp)
    for divisor in divisions.filled:
        ranks = tp * layout.data_parallel_size if divisor.is_dealt_out else joined
        check_blocks(divisor, architecture.hidden_size, quantization, layout, ranks, device, padded)
    for divisor in divisions.outputs:
        check_blocks(divisor, architecture.hidden_size, quantization, layout, tp, device)
    check_stages(architecture, layout, device)
    _check_version(layout, device)
    _check_experts(architecture, divisions, layout, device)
    unpacks = device.unpacks_dealt_mxfp4 and quantization.method == "mxfp4"
    if layout.expert_parallel and unpacks and any(part.has_own_kernel for part in architecture.feed_forwards):
        raise UnsupportedLayoutError(
            f"{device.engine} loads experts in mxfp4 unpacked to 16 bits where ranks hold them whole, before compute "
            "capability 10; that is not sized",
            field="expert_parallel",
            accepted="false",
        )
    _check_context_parallel(architecture, layout, device)


def _joined_ranks(architecture: Architecture, layout: Layout, device: Device) -> int:
    """Return the ranks over which all but attention is split: where copies of it share experts, maybe of all copies."""
    joins = device.plan.joins_copies and architecture.has_experts and layout.all2all_backend is None
    return layout.tensor_parallel_size * (layout.data_parallel_size if joins else 1)


def _check_vocabulary(architecture: Architecture, tp: int, device: Device) -> None:
    """Raise UnsupportedLayoutError if ranks do not divide a table of words, once it is padded.

    Source:
        vLLM 0.8 to 0.33 `model_executor/layers/vocab_parallel_embedding.py` (`pad_vocab_size`, then `divide`), of
        embeddings and output head alike.
    """
    if device.plan.pads_vocabulary_for_ranks:
        return
    sizes = [architecture.vocab_size]
    if (embeddings := architecture.per_layer_embeddings) is not None:
        sizes.append(embeddings.vocab_size)
    for rows in map(padded_vocabulary, sizes):
        if rows % tp:
            raise _refusal(
                f"tensor_parallel_size {tp} does not divide the {rows} rows of the model's vocabulary, as padded", rows
            )


def _check_columns(sizes: tuple[tuple[str, int], ...], ranks: int, tp: int) -> None:
    """Raise UnsupportedLayoutError if ranks, maybe those of all copies, do not divide the columns of a network."""
    for name, size in sizes:
        if size % ranks:
            field = "tensor_parallel_size" if size % tp else "data_parallel_size"
            raise _refusal(f"{ranks} ranks do not divide the model's {size} {name}", size, field)


def _check_copies(architecture: Architecture, layout: Layout, device: Device) -> None:
    """Raise UnsupportedLayoutError if SGLang's class splits its attention, or tower, over the ranks of all copies.

    Source: `families/in_sglang.py` (`sglang_copies`).
    """
    if architecture.sglang_copies == "none":
        detail = f"{device.engine} splits the attention of {architecture.name} over all ranks, and has no copies of it"
        raise _unlike("data_parallel_size", detail, "1, or more replicas")
    if layout.tensor_parallel_size > 1 and architecture.sglang_copies == "whole":
        detail = f"{device.engine} has copies of {architecture.name} on one rank each, and splits none"
        raise _unlike("tensor_parallel_size", detail, "1, or data_parallel_size=1")


def _check_version(layout: Layout, device: Device) -> None:
    """Raise UnsupportedLayoutError if the version has no flag yet for copies of the attention, or to deal out experts.

    Source:
        vLLM 0.7.3, 0.8.0, 0.8.2 and 0.8.3 `engine/arg_utils.py` (`add_cli_args`).
    """
    if layout.data_parallel_size > 1 and not device.plan.copies_attention:
        raise _unlike("data_parallel_size", f"{device.engine} has no such flag, which came with 0.8.3", "1")
    if layout.expert_parallel and not device.plan.deals_out_experts:
        raise _unlike("expert_parallel", f"{device.engine} has no such flag, which came with 0.8.0", "false")


def _unlike(field: str, detail: str, accepted: str) -> UnsupportedLayoutError:
    return UnsupportedLayoutError(detail, field=field, accepted=accepted)


def _check_experts(architecture: Architecture, divisions: Divisions, layout: Layout, device: Device) -> None:
    """Raise UnsupportedLayoutError if the engine finds no experts to deal out, too few, or not as many for each rank.

    Or if copies of the attention that share experts are split, where each stands on one rank.

    Sources:
        SGLang 0.5.23 `layers/moe/fused_moe_triton/layer.py` (`assert self._num_global_routed % storage_ep_size`);
        TensorRT-LLM `mapping.py` (`ep_experts`, which leaves the rest to nobody), `_torch/modules/attention.py`.
    """
    is_split = layout.tensor_parallel_size > 1 and layout.data_parallel_size > 1
    if is_split and architecture.has_experts and not device.plan.splits_copies:
        detail = f"{device.engine} has a copy of the attention on each rank, and splits none"
        raise _unlike("tensor_parallel_size", detail, "1, or data_parallel_size=1")
    if layout.data_parallel_size > 1 and architecture.has_experts and device.plan.has_own_classes:
        _check_copies(architecture, layout, device)
    if layout.expert_parallel and device.is_vllm and not architecture.deals_out_experts:
        detail = f"{device.engine} finds no experts to deal out in {architecture.name}"
        raise _unlike("expert_parallel", detail, "false")
    ranks = layout.tensor_parallel_size * layout.data_parallel_size
    if layout.expert_parallel and divisions.num_experts < ranks:
        raise UnsupportedLayoutError(
            f"expert_parallel over {ranks} ranks needs at least as many experts; the model has {divisions.num_experts}",
            field="expert_parallel",
            accepted="expert_parallel=false" if not divisions.num_experts else f"at most {divisions.num_experts} ranks",
        )
    if layout.expert_parallel and device.plan.deals_experts_evenly and divisions.num_experts % ranks:
        detail = (
            f"{device.engine} deals out as many experts to every rank; {ranks} do not divide {divisions.num_experts}"
        )
        raise _unlike("expert_parallel", detail, f"ranks that divide {divisions.num_experts}, or expert_parallel=false")


def _check_context_parallel(architecture: Architecture, layout: Layout, device: Device) -> None:
    """Raise UnsupportedLayoutError if the engine cannot spread the tokens of one cache over these ranks.

    Latents are the same on every rank, so any number of ranks that divides TP may hold them in turn.
    Keys and values of heads only where TP replicates them. Windows never; nor what no kernel of the GPU puts together.

    Source:
        vLLM 0.33 `config/parallel.py`, `ModelConfig.verify_with_parallel_config`,
        `SlidingWindowSpec.max_memory_usage_bytes`, `AttentionBackend.supports_dcp`.
    """
    dcp, tp = layout.decode_context_parallel_size, layout.tensor_parallel_size
    if dcp == 1:
        return
    if device.is_vllm and not device.plan.spreads_context:
        raise _context_refusal(f"{dcp} is no choice of {device.engine}, which has it from 0.10.2 on", "1")
    if tp % dcp:
        raise _context_refusal(f"{dcp} does not divide tensor_parallel_size {tp}", f"a divisor of {tp}")
    spreads = [mixer.spread for mixer in architecture.mixers]
    if any(spread.is_local for spread in spreads):
        raise _context_refusal(f"{dcp} is not possible with sliding windows or chunks", "1")
    if any(spread.is_on_one_rank for spread in spreads):
        raise _context_refusal(f"{dcp} is not possible with keys that stand for several tokens of softmax heads", "1")
    heads = {(spread.queries, spread.key_values) for spread in spreads if spread.key_values}
    if not heads:
        raise _context_refusal(f"{dcp} needs attention whose cache grows", "1")
    for queries, key_values in sorted(heads):
        most = tp // key_values
        if tp <= key_values or dcp > most or queries // key_values % dcp:
            raise _context_refusal(
                f"{dcp} needs {dcp} ranks for each of the model's {key_values} key-value heads, and a divisor of the "
                f"{queries // key_values} query heads of each; tensor_parallel_size is {tp}",
                f"1, or tensor_parallel_size of at least {dcp * key_values}" if most <= 1 else f"1 to {most}",
            )
    asked = AskedCache(context_ranks=dcp, images_both_ways=architecture.sees_images_both_ways)
    if device.is_vllm_on_cuda and not runs_over_ranks(architecture, asked, device):
        raise _context_refusal(f"{dcp} has no kernel on compute capability {device.dotted}", "1")


def _context_refusal(detail: str, accepted: str) -> UnsupportedLayoutError:
    field = "decode_context_parallel_size"
    return UnsupportedLayoutError(f"{field} {detail}", field=field, accepted=accepted)


def _refusal(detail: str, size: int, field: str = "tensor_parallel_size") -> UnsupportedLayoutError:
    sizes = ", ".join(str(tp) for tp in (1, 2, 3, 4, 5, 6, 7, 8, 16, 32) if size % tp == 0)
    return UnsupportedLayoutError(detail, field=field, accepted=f"a divisor, such as {sizes}")


def is_legal(architecture: Architecture, quantization: Quantization, layout: Layout, device: Device) -> bool:
    """Return whether the engine would start this layout."""
    try:
        check_layout(architecture, quantization, layout, device)
    except UnsupportedLayoutError:
        return False
    return True


@derived(16)
def _divisions(architecture: Architecture, quantization: Quantization) -> Divisions:
    """Collect every size that tensor parallelism cuts, and what must hold of it."""
    heads = {divisor for mixer in architecture.mixers for divisor in mixer.divisors}
    if architecture.encoder is not None:
        heads |= set(architecture.encoder.divisors)
    columns = {divisor for part in architecture.feed_forwards for divisor in part.divisors}
    routings = [part.routing for part in architecture.feed_forwards]
    return Divisions(
        exact=tuple(sorted((divisor.name, divisor.size) for divisor in heads if divisor.rule == "exact")),
        columns=tuple(sorted((divisor.name, divisor.size) for divisor in columns if divisor.rule == "exact")),
        repeated=tuple(sorted((divisor.name, divisor.size) for divisor in heads if divisor.rule == "repeated")),
        num_experts=max((routing.num_experts for routing in routings if routing is not None), default=0),
        dealt=tuple(sorted({(divisor.name, divisor.size) for divisor in columns if divisor.is_dealt_out})),
        filled=blocked_columns(architecture, quantization),
        outputs=blocked_outputs(architecture, quantization),
    )
