"""The GPU a question is about."""

from pydantic import Field

from service.engine.inputs import Gpu
from service.questions.parts.part import Part
from service.questions.sources import Sources
from service.questions.values import Text


class OnGpu(Part):
    """One type of GPU."""

    gpu: Text = Field(
        description="GPU id or alias such as h100, as a driver or its maker writes it, 8xH100, or an instance type; "
        "what is not literal stands in assumptions",
        examples=["h100"],
    )

    def gpu_facts(self, sources: Sources, *, has_own_price: bool = False) -> Gpu:
        """Return the GPU to compute with, which the caller pays as listed, or at a price of their own.

        Raises:
            RefusalError: the catalog has no such GPU.
        """
        return sources.rented_gpu(self.gpu, field="gpu", has_own_price=has_own_price)
