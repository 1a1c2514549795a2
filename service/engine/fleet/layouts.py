"""Which parallel layouts the serving engine would start, by the divisions it insists on."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from service.engine.errors import UnsupportedLayoutError
from service.engine.formats.quantization import Quantization
from service.engine.inputs import Layout
from service.engine.layers import Architecture, Divisor

# Quantization schemes whose kernels work on whole blocks of columns.
BLOCKED_SCHEMES: Final = frozenset({"fp8-block", "int4-group", "nvfp4"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Divisions:
    """Sizes that tensor parallelism must divide, and the name a person knows them by."""

    exact: tuple[tuple[str, int], ...]  # must be divisible by TP
    repeated: tuple[tuple[str, int], ...]  # divisible by TP, or TP by them
    num_experts: int  # 0 without experts
    blocks: tuple[tuple[str, int, int, bool], ...]  # name, size, block, exempt under expert parallelism


def check_layout(architecture: Architecture, quantization: Quantization, layout: Layout) -> None:
    """Raise UnsupportedLayoutError, saying which size does not divide, if the engine would refuse to start.

    Sources:
        vLLM 0.33 ModelConfig.verify_with_parallel_config (heads, pipeline stages),
        distributed.utils.divide (matrices, heads of towers), validate_fp8_block_shape and
        validate_fp8_block_shape_moe (quantization blocks).
    """
    tp = layout.tensor_parallel_size
    divisions = _divisions(architecture, quantization)
    for name, size in divisions.exact:
        if size % tp:
            raise _refusal(f"tensor_parallel_size {tp} does not divide the model's {size} {name}", size)
    for name, size in divisions.repeated:
        if size % tp and tp % size:
            raise _refusal(
                f"tensor_parallel_size {tp} neither divides the model's {size} {name} nor is divided by them", size
            )
    for name, size, block, exempt in divisions.blocks:
        # Experts that are cut are cut over all ranks, those of other attention copies included.
        ranks = tp * layout.data_parallel_size if exempt else tp
        if ranks > 1 and (size // ranks) % block and not (exempt and layout.expert_parallel):
            field = "tensor_parallel_size" if ranks == tp else "data_parallel_size"
            raise UnsupportedLayoutError(
                f"{field} {ranks // (1 if ranks == tp else tp)} leaves {size // ranks} of the {size} {name} on a rank, "
                f"which the quantization block of {block} does not divide",
                field=field,
                accepted="a smaller tensor_parallel_size" + (", or expert_parallel=true" if exempt else ""),
            )
    _check_stages(architecture, divisions, layout)
    _check_context_parallel(architecture, layout)


def _check_stages(architecture: Architecture, divisions: Divisions, layout: Layout) -> None:
    """Raise UnsupportedLayoutError if stages or experts do not fit the model."""
    if layout.pipeline_parallel_size > len(architecture.layers):
        raise UnsupportedLayoutError(
            f"pipeline_parallel_size {layout.pipeline_parallel_size} exceeds the {len(architecture.layers)} layers",
            field="pipeline_parallel_size",
            accepted=f"1 to {len(architecture.layers)}",
        )
    ranks = layout.tensor_parallel_size * layout.data_parallel_size
    if layout.expert_parallel and divisions.num_experts < ranks:
        raise UnsupportedLayoutError(
            f"expert_parallel over {ranks} ranks needs at least as many experts; the model has {divisions.num_experts}",
            field="expert_parallel",
            accepted="expert_parallel=false" if not divisions.num_experts else f"at most {divisions.num_experts} ranks",
        )


def _check_context_parallel(architecture: Architecture, layout: Layout) -> None:
    """Raise UnsupportedLayoutError if the engine cannot spread the tokens of one cache over these ranks.

    Latents are the same on every rank, so any number of ranks that divides TP may hold them in turn.
    Keys and values of heads only where TP replicates them. Windows never.

    Source:
        vLLM 0.33 `config/parallel.py`, `ModelConfig.verify_with_parallel_config`,
        `SlidingWindowSpec.max_memory_usage_bytes`.
    """
    dcp, tp = layout.decode_context_parallel_size, layout.tensor_parallel_size
    if dcp == 1:
        return
    if tp % dcp:
        raise _context_refusal(f"{dcp} does not divide tensor_parallel_size {tp}", f"a divisor of {tp}")
    spreads = [mixer.spread for mixer in architecture.mixers]
    if any(spread.is_local for spread in spreads):
        raise _context_refusal(f"{dcp} is not possible with sliding windows or chunks", "1")
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


def _context_refusal(detail: str, accepted: str) -> UnsupportedLayoutError:
    field = "decode_context_parallel_size"
    return UnsupportedLayoutError(f"{field} {detail}", field=field, accepted=accepted)


def _refusal(detail: str, size: int) -> UnsupportedLayoutError:
    sizes = ", ".join(str(tp) for tp in (1, 2, 3, 4, 5, 6, 7, 8, 16, 32) if size % tp == 0)
    return UnsupportedLayoutError(detail, field="tensor_parallel_size", accepted=f"a divisor, such as {sizes}")


def is_legal(architecture: Architecture, quantization: Quantization, layout: Layout) -> bool:
    """Return whether the engine would start this layout."""
    try:
        check_layout(architecture, quantization, layout)
    except UnsupportedLayoutError:
        return False
    return True


@lru_cache(maxsize=1024)
def _divisions(architecture: Architecture, quantization: Quantization) -> Divisions:
    """Collect every size that tensor parallelism cuts, and what must hold of it."""
    divisors = {divisor for part in architecture.parts for divisor in part.divisors}
    if architecture.encoder is not None:
        divisors |= set(architecture.encoder.divisors)
    routings = [part.routing for part in architecture.feed_forwards]
    return Divisions(
        exact=tuple(sorted((it.name, it.size) for it in divisors if it.rule == "exact")),
        repeated=tuple(sorted((it.name, it.size) for it in divisors if it.rule == "repeated")),
        num_experts=max((routing.num_experts for routing in routings if routing is not None), default=0),
        blocks=_blocks(divisors, quantization),
    )


def _blocks(divisors: Iterable[Divisor], quantization: Quantization) -> tuple[tuple[str, int, int, bool], ...]:
    """Return the blocks that a rank's columns must fill, for schemes with two-dimensional blocks or groups."""
    if quantization.scheme not in BLOCKED_SCHEMES or not quantization.block:
        return ()
    filled = (it for it in divisors if it.fills_blocks)
    return tuple(sorted((it.name, it.size, quantization.block, it.is_dealt_out) for it in filled))
