"""Which kernels read a model's cache on a GPU, the block they share, and what the engine refuses for want of one.

Sources:
    vLLM 0.33 `platforms/cuda.py` (`get_attn_backend_cls`), `platforms/interface.py`
    (`_preferred_block_size_for_backends`, `_align_hybrid_block_size`), `models/deepseek_v4/attention.py`
    (cache dtypes).
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from service.engine.derived import derived
from service.engine.engines.device import Device
from service.engine.engines.kernel import AskedCache, CacheKind, Kernel
from service.engine.engines.kernels import kernel_of, raises_on_fp8
from service.engine.errors import RefusedStartError
from service.engine.formats.elements import BYTE, cache_bytes
from service.engine.inputs import EngineSettings, KvCacheDtype, is_scaled
from service.engine.layers import USUAL_RECORDS, Architecture, CacheSpec, KernelNeed, Records

# Beside recurrent states, blocks of latents are long enough for the kernels that split them.
LATENT_KINDS: Final = ("latent", "sparse")
NAMES: Final[Mapping[str, str]] = {"sparse": "sparse latent attention", "latent": "latent attention"}


def asked_cache(
    architecture: Architecture,
    dtype: KvCacheDtype,
    *,
    is_checkpoints_dtype: bool,
    is_text_only: bool,
    ranks: int,
    block_size: int | None,
) -> AskedCache:
    """Return what the model's kernels are asked to read."""
    is_fp8 = cache_bytes(dtype, architecture.element_bytes) == BYTE
    in_fp8: CacheKind = "checkpoint_fp8" if is_checkpoints_dtype else "fp8"
    kind: CacheKind = dtype if is_scaled(dtype) else in_fp8 if is_fp8 else "model"
    return AskedCache(
        kind=kind,
        images_both_ways=architecture.sees_images_both_ways and not is_text_only,
        context_ranks=ranks,
        block_size=block_size,
    )


def asked_of(architecture: Architecture, settings: EngineSettings, ranks: int) -> AskedCache:
    """Return what the model's kernels are asked to read under settings, over so many ranks of context."""
    return asked_cache(
        architecture,
        settings.kv_cache_dtype,
        is_checkpoints_dtype=settings.is_checkpoints_cache_dtype,
        is_text_only=settings.is_text_only,
        ranks=ranks,
        block_size=settings.block_size,
    )


def kernels_of(architecture: Architecture, asked: AskedCache, device: Device) -> tuple[Kernel, ...]:
    """Return the kernels of all layers, each once.

    Raises:
        RefusedStartError: the engine has none for a layer on this GPU, or one that refuses the cache's dtype.
    """
    return tuple(dict.fromkeys(_kernel(need, asked, device) for need in needs_of(architecture)))


def records_of(kernels: Iterable[Kernel]) -> Records:
    """Return how the kernels want latents with a compressed past stored: one of them at most does."""
    return next((kernel.records for kernel in kernels if kernel.records != USUAL_RECORDS), USUAL_RECORDS)


def hybrid_alignment(architecture: Architecture, device: Device) -> int:
    """Return what blocks are a multiple of at least, where they hold recurrent states as well. [tokens]."""
    has_latents = any(need.kind in LATENT_KINDS for need in needs_of(architecture))
    return device.plan.hybrid_latent_tokens if has_latents else 1


def divided_by_rings(block_size: int, specs: Iterable[CacheSpec]) -> int:
    """Return a block that every ring divides. [tokens].

    Raises:
        RefusedStartError: one does not, for the tokens that are drafted.

    Source: vLLM 0.33 `models/qwen4_exp/common/qsa_cache.py` ("QSA ring capacity ... must divide the attention block").
    """
    rings = {spec.block_size for spec in specs if spec.kind == "circular_buffer"}
    if any(block_size % ring for ring in rings):
        raise RefusedStartError(
            f"beside states blocks have {block_size} tokens, which a ring of {max(rings)} raw keys does not divide",
            field="num_speculative_tokens",
            accepted="fewer drafted tokens",
        )
    return block_size


def runs_over_ranks(architecture: Architecture, asked: AskedCache, device: Device) -> bool:
    """Return whether kernels of a GPU put together what several ranks of context attend to."""
    return all(kernel_of(need, asked, device) is not None for need in needs_of(architecture))


@derived(1)
def needs_of(architecture: Architecture) -> tuple[KernelNeed, ...]:
    """Return what the layers' attention needs of kernels, each need once."""
    return tuple(dict.fromkeys(need for mixer in architecture.mixers for need in mixer.kernel_needs))


def _kernel(need: KernelNeed, asked: AskedCache, device: Device) -> Kernel:
    kernel = kernel_of(need, asked, device)
    if kernel is None:
        raise _without_kernel(need, asked, device)
    if raises_on_fp8(kernel, asked, device) and not need.keeps_model_dtype:
        newer = "" if kernel.refuses_fp8 else ", or a GPU of compute capability 8.9 or newer"
        raise RefusedStartError(
            f"{device.engine} runs this attention with {kernel.name} on compute capability {device.dotted}, "
            "which reads no fp8 cache there",
            field="kv_cache_dtype",
            accepted=f"auto{newer}",
        )
    return kernel


def _without_kernel(need: KernelNeed, asked: AskedCache, device: Device) -> RefusedStartError:
    """Return the refusal of attention that no kernel runs on a generation, or not as it was asked for."""
    heads = f"attention with heads of {need.key_dim}" if need.key_dim else "this model's attention"
    what = NAMES.get(need.kind, heads)
    selected = f" of {need.top_k} tokens" if device.generation == 12 and need.top_k else ""
    where = f" on compute capability {device.dotted}" if device.is_vllm_on_cuda else ""
    refused = f"{device.engine} has no kernel for {what}{selected}{where}"
    if asked.is_scaled and kernel_of(need, replace(asked, kind="model"), device) is not None:
        return RefusedStartError(
            f"{refused} that reads a cache of {asked.kind}", field="kv_cache_dtype", accepted="auto or fp8"
        )
    unstated = kernel_of(need, replace(asked, block_size=None), device)
    if unstated is not None:
        return RefusedStartError(
            f"{refused} that reads blocks of {asked.block_size} tokens",
            field="block_size",
            accepted=f"{max(unstated.blocks)}, or unstated",
        )
    if kernel_of(need, replace(asked, context_ranks=1), device) is not None:
        field = "decode_context_parallel_size"
        return RefusedStartError(f"{refused} with {field}={asked.context_ranks}", field=field, accepted="1")
    return RefusedStartError(refused, field="gpu", accepted="a GPU of compute capability 9.0 or 10.0")


def own_page_size(architecture: Architecture, device: Device) -> int:
    """Return the pages of SGLang's own choice on a GPU: of models whose every layer attends plainly. [tokens].

    Source: SGLang 0.5.6 to 0.5.23 `server_args.py` and `arg_groups/attention_hook.py` ("TensorRT-LLM MHA only supports
    page_size of 16, 32 or 64").
    """
    needs = [mixer.kernel_needs for mixer in architecture.mixers]
    is_plain = all(of_layer and all(need.kind == "grouped" for need in of_layer) for of_layer in needs)
    return device.page_size if is_plain else 1
