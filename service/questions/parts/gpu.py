"""The GPU a question is about."""

from pydantic import Field

from service.engine.fleet.questions import Offer
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

    def gpu_facts(self, sources: Sources) -> Gpu:
        """Return the GPU to compute with.

        Raises:
            RefusalError: the catalog has no such GPU.
        """
        return sources.gpu(self.gpu, field="gpu", priced=True)

    def rented(self, sources: Sources) -> tuple[Offer, ...]:
        """Return what may be rented: every offer, or those of the instance type that was named."""
        return sources.offers_of(self.gpu)
