"""What a list of options considers where the caller names no GPUs: deployments as data centres run them.

    product line   GPUs made for servers; those of desks and games where the caller asks for such lines
    format         the model's own, 16 bits, int4 (weights alone, on any GPU), or one that the GPU computes in
    servers        a replica over several servers only where each is one fast domain, built to be joined to others

A caller who names GPUs has everything considered on them.
"""

from collections.abc import Iterator
from typing import Final

from service.engine.facts import ModelFacts
from service.engine.fleet.checkpoints import own_checkpoint
from service.engine.inputs import Gpu, ProductLine, WeightFormat

# Words of the name that the vendor gives its lines. GeForce: "The SOFTWARE is not licensed for datacenter deployment"
# (NVIDIA GeForce software licence, 2.1.3).
CONSUMER: Final = ("GeForce", "TITAN")
DESK: Final = ("RTX", "Quadro", "Radeon", "Arc", "Jetson", "DGX Spark")
SERVER: Final = "Server"
PRECISIONS: Final[dict[WeightFormat, str]] = {"fp8": "fp8", "int8": "int8", "mxfp4": "fp4", "nvfp4": "fp4"}
SHORTLIST_SOURCE: Final = (
    "types that somebody in question rents out, of the product lines in question, each in formats that it computes in "
    "and within a server where no fabric joins servers; what gpus names is considered without such a choice"
)
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


def usual_formats(model: ModelFacts, gpu: Gpu) -> Iterator[WeightFormat]:
    """Yield the formats a model is published in that are served on such a GPU."""
    own = own_checkpoint(model).weight_format
    for weight_format in dict.fromkeys(each.weight_format for each in model.checkpoints):
        if weight_format == own or computes_in(gpu, weight_format):
            yield weight_format
