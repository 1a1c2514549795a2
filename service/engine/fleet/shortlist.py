"""What a list of options considers where the caller names no GPUs: deployments as data centres run them.

    product line   GPUs made for servers; those of desks and games where the caller asks for such lines
    format         16 bits, or one that the GPU computes in; of four bits also the model's own, and weights alone (int4)
                   by the model's publisher: who else made them does not vouch for its answers
    servers        a replica over several servers only where each is one fast domain, built to be joined to others;
                   without a fabric inside, over the GPUs of one of its two processors

A caller who names GPUs has everything considered on them.
"""

from collections.abc import Iterator
from typing import Final

from service.engine.facts import Checkpoint, ModelFacts
from service.engine.fleet.checkpoints import own_checkpoint
from service.engine.inputs import Gpu, ProductLine, WeightFormat

# Words of the name that the vendor gives its lines. GeForce: "The SOFTWARE is not licensed for datacenter deployment"
# (NVIDIA GeForce software licence, 2.1.3).
CONSUMER: Final = ("GeForce", "TITAN", "Radeon RX")
DESK: Final = ("RTX", "Quadro", "Radeon", "Arc", "Jetson", "DGX Spark")
SERVER: Final = "Server"
PRECISIONS: Final[dict[WeightFormat, str]] = {"fp8": "fp8", "int8": "int8", "mxfp4": "fp4", "nvfp4": "fp4"}
SHORTLIST_SOURCE: Final = (
    "types that somebody in question rents out, of the product lines in question, each in formats that it computes in "
    "and within a server where no fabric joins servers; what gpus names is considered without such a choice"
)
FORMATS_SOURCE: Final = (
    "not considered on GPUs that do not compute in them, nor four bits that the model's publisher did not make; "
    "weight_formats={formats} has them considered, and may take fewer GPUs"
)
FOUR_BITS: Final[tuple[WeightFormat, ...]] = ("int4", "mxfp4", "nvfp4")
JOINED_GPUS: Final = 4  # of one fast domain that fills its server, at least


def product_line(gpu: Gpu) -> ProductLine:
    """Return whom a GPU is made for, as the vendor's name of its line tells."""
    if any(word in gpu.name for word in CONSUMER):
        return "consumer"
    if any(word in gpu.name for word in DESK) and SERVER not in gpu.name:
        return "workstation"
    return "data-centre"


def stays_in_server(gpu: Gpu) -> bool:
    """Return whether servers with such GPUs are not built to be joined: PCIe inside, an ordinary network between."""
    return gpu.scale_up_domain_gpus < max(gpu.gpus_per_node, JOINED_GPUS)


def computes_in(gpu: Gpu, weight_format: WeightFormat) -> bool:
    """Return whether a GPU has arithmetic for a format, or the format is of weights alone."""
    precision = PRECISIONS.get(weight_format)
    return precision is None or precision in gpu.peak_flop_per_s


def most_together(gpu: Gpu) -> int:
    """Return the GPUs of a server that a replica is spread over: without a fabric those of one of its two processors.

    Source: NVIDIA's reference for servers of eight PCIe GPUs, "2-8-5": two processors, eight GPUs, five adapters.
    """
    is_divided = gpu.gpus_per_node > JOINED_GPUS > gpu.scale_up_domain_gpus
    return gpu.gpus_per_node // 2 if is_divided else gpu.gpus_per_node


def usual_formats(model: ModelFacts, gpu: Gpu) -> Iterator[WeightFormat]:
    """Yield the formats a model is published in that are served on such a GPU."""
    own = own_checkpoint(model)
    yield from dict.fromkeys(each.weight_format for each in model.checkpoints if _is_usual(each, own, gpu))


def _is_usual(checkpoint: Checkpoint, own: Checkpoint, gpu: Gpu) -> bool:
    weight_format = checkpoint.weight_format
    if checkpoint is own and weight_format in FOUR_BITS:
        return True
    is_vouched_for = weight_format != "int4" or _publisher(checkpoint) == _publisher(own)
    return is_vouched_for and computes_in(gpu, weight_format)


def _publisher(checkpoint: Checkpoint) -> str:
    """Return whose repository holds a checkpoint."""
    return (checkpoint.hf_id or "").partition("/")[0].lower()
