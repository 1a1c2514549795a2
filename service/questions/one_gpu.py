"""What questions of one GPU type share: the load, limits and layout that `/size` and `/replicas` hand to the engine."""

from abc import ABC

from service.engine.engines.runs_on import check_run
from service.engine.fleet.questions import SizeQuestion
from service.engine.memory.kernels import needs_of
from service.engine.time.steps import StepTimers
from service.questions.asked import Asked
from service.questions.parts.deployment import InLayout, WithSettings
from service.questions.parts.gpu import OnGpu
from service.questions.parts.load import SomeLoad, WithConfidence, WithHeadroom, WithinLimits
from service.questions.parts.model import NamedModel
from service.questions.parts.prices import Priced
from service.questions.sources import Sources


class OfOneGpu(
    Asked, Priced, WithSettings, InLayout, WithConfidence, WithHeadroom, WithinLimits, SomeLoad, OnGpu, NamedModel, ABC
):
    """This model, this load, this GPU type."""

    def sized(self, sources: Sources, timers: StepTimers | None) -> SizeQuestion:
        """Return the engine's question; without timers it is one of memory alone.

        Raises:
            RefusalError: the catalog lacks what was named.
            EngineError: the model, or the engine's version, has no rules, or nothing runs the model on the GPU.
        """
        gpu = self.gpu_facts(sources, has_own_price=self.usd_per_gpu_hour is not None)
        model = self.model_facts(sources)
        check_run(gpu, needs_of(model.architecture))
        prices = self.prices(sources, (gpu.id,), names=(self.gpu,))
        load = self.load_of(self.input_tokens, self.output_tokens, self.speculative_acceptance_fraction)
        return SizeQuestion(
            model=model,
            gpu=gpu,
            load=load,
            limits=self.limits().breakable(load),
            layout=self.layout_wish(),
            headroom=self.headroom(),
            settings=self.settings_wish(),
            rules=self.rules_of(sources, model),
            flags=self.flags(),
            offers=prices.offers,
            left_out_offers=prices.left_out,
            price_terms=self.price_terms(),
            timers=timers,
            confidence=self.confidence,
        )
