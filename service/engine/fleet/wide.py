"""Where ranks may send the tokens of whole experts to each other by DeepEP, as far as that is sized.

Each rank has a copy of the attention, its dense parts whole, and as many experts as any other. Kernels of it were
measured for one shape of experts, in blocks of fp8, on Hopper and in racks of Blackwell:

    ranks    eights of them up to 64; in racks 16 at least
    running  256 tokens of a step that decodes on a rank at most, in racks 1,024

Sources:
    SGLang 0.4.10 to 0.5.23 `server_args.py` (`--moe-a2a-backend`), `layers/moe/token_dispatcher/deepep.py` ("the actual
    batch size in the decoding engine should be less than 256", and room for 128 unless
    `SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK` says otherwise); aiconfigurator-core 0.12
    systems/data/h100_sxm/{comm,moe}/sglang (`wideep_*`).
"""

from typing import Final

from service.engine.engines.device import RACK_GPUS, Device, fewest_exchanging
from service.engine.errors import InvalidQuestionError, UnsupportedLayoutError
from service.engine.fleet.questions import StatedSettings
from service.engine.fleet.results import Assumption
from service.engine.formats.quantization import Quantization
from service.engine.inputs import Gpu, Layout
from service.engine.layers import Architecture

EIGHT: Final = 8
# Of one rank in a step that decodes: over a network, and in a rack, as SGLang asserts.
MOST_TOKENS: Final = 256
MOST_OF_RACK: Final = 1_024
MEASURED_ATTENTION: Final = ({"latent"}, {"sparse", "indexer"})  # to all latents, or to picked ones
# Width of the model, columns of an expert, and experts that a token passes, as measured.
MEASURED_WIDTH, MEASURED_COLUMNS, MEASURED_CHOSEN = 7_168, 2_048, 8
SHARE: Final = 0.835
SHARE_WHY: Final = (
    "as published pools of 72 H100 state it (github.com/sgl-project/sglang/issues/6017): the engine's own sets aside "
    "more for each copy of the attention than there is"
)
SENT_WHY: Final = "as many as DeepEP is given room for in a step that decodes, on each GPU"
FIELD: Final = "all2all_backend"
LEFT_OUT: Final = "without it the engine's own exchange is sized"


def check_exchange(architecture: Architecture, quantization: Quantization, layout: Layout, device: Device) -> None:
    """Raise UnsupportedLayoutError if a layout that sends tokens by a backend is not one that is sized.

    Args:
        architecture: the model.
        quantization: how its weights are stored.
        layout: how one replica is spread.
        device: the GPU's generation and the engine's version.
    """
    if layout.all2all_backend is None:
        return
    if not device.fewest_exchanging:
        raise _refusal(f"is sized for SGLang on Hopper, GB200 and GB300, and not for {device.engine} here", LEFT_OUT)
    if not are_measured_experts(architecture, quantization):
        detail = f"was measured for {MEASURED_CHOSEN} chosen experts of {MEASURED_COLUMNS:,} columns in "
        raise _refusal(f"{detail}{MEASURED_WIDTH:,}, in blocks of fp8, and not for {architecture.name}", LEFT_OUT)
    ranks = layout.data_parallel_size
    alone = layout.gpus_per_replica == ranks and layout.decode_context_parallel_size == 1
    if not (layout.expert_parallel and alone and ranks >= device.fewest_exchanging and ranks % EIGHT == 0):
        sizes = ", ".join(str(size) for size in (8, 16, 32) if size >= device.fewest_exchanging)
        raise _refusal(
            "asks for whole experts and a copy of the attention on each GPU, eight at a time",
            f"data_parallel_size={sizes} or 64 with expert_parallel=true, and none of the other sizes",
        )


def most_running(stated: StatedSettings, gpu: Gpu) -> int:
    """Return how many requests may run at once on a rank, each with a token and its drafts in a step. [count].

    Raises:
        InvalidQuestionError: more are stated, or adapters, which are not served beside balanced experts.
    """
    if stated.max_loras:
        raise InvalidQuestionError(
            f"max_loras {stated.max_loras}: SGLang serves no adapters where {FIELD} deepep balances experts",
            field="max_loras",
            accepted=f"0, or no {FIELD}",
        )
    tokens = MOST_OF_RACK if gpu.scale_up_domain_gpus >= RACK_GPUS else MOST_TOKENS
    most, asked = tokens // (1 + stated.num_speculative_tokens), stated.max_num_seqs
    if asked is not None and asked > most:
        raise InvalidQuestionError(
            f"max_num_seqs {asked}: {FIELD} deepep sends {tokens} tokens of a rank in a step that decodes at most",
            field="max_num_seqs",
            accepted=f"1 to {most}, or no {FIELD}",
        )
    return most


def chosen_share(stated: StatedSettings) -> tuple[float, Assumption] | None:
    """Return the share of memory for weights and cache, and why; None where it is stated, or nothing is sent.

    The engine's own sets 3 to 4.5 MiB aside for each captured request of each copy of the attention: of 64 copies more
    than there is.
    """
    if stated.all2all_backend is None or stated.gpu_memory_utilization is not None:
        return None
    return SHARE, Assumption(name="gpu_memory_utilization", value=SHARE, origin="chosen", source=SHARE_WHY)


def is_sized_on(gpu: Gpu, architecture: Architecture, quantization: Quantization) -> bool:
    """Return whether DeepEP is sized for a model on a GPU."""
    return fewest_exchanging(gpu) > 0 and are_measured_experts(architecture, quantization)


def are_measured_experts(architecture: Architecture, quantization: Quantization) -> bool:
    """Return whether a model's experts are of the shape and format that DeepEP was measured with, beside latents."""
    experts = {
        (shape.expert_columns, shape.num_experts_per_tok)
        for part in architecture.feed_forwards
        if (shape := part.shape) is not None and shape.num_experts
    }
    kinds = {need.kind for mixer in architecture.mixers for need in mixer.kernel_needs}
    is_of_shape = architecture.hidden_size == MEASURED_WIDTH and experts == {(MEASURED_COLUMNS, MEASURED_CHOSEN)}
    return is_of_shape and kinds in MEASURED_ATTENTION and quantization.scheme == "fp8-block"


def _refusal(detail: str, accepted: str) -> UnsupportedLayoutError:
    return UnsupportedLayoutError(f"{FIELD} deepep {detail}", field=FIELD, accepted=accepted)
