"""What is made ready before anybody asks: compiled code, and tables of models that many ask for."""

from collections.abc import Iterable, Iterator
from threading import Event, Thread
from typing import Final

from service.engine.engines.rules import EngineRules
from service.engine.errors import EngineError
from service.engine.facts import ModelFacts
from service.engine.fleet.planned import legal_layouts
from service.engine.fleet.questions import StatedSettings
from service.engine.fleet.settings import resolve
from service.engine.inputs import Gpu, Layout, StatedLayout
from service.engine.time.ready import make_ready
from service.engine.time.steps import Deployed, keeps_states
from service.performance.kernel_tables import KernelTables, NotMeasuredError
from service.performance.kernels import kernels_of

PAUSE_S: Final = 0.05
MOST_GPUS: Final = 8  # of one replica


def deployments_of(models: Iterable[ModelFacts], gpus: Iterable[Gpu], rules: EngineRules) -> Iterator[Deployed]:
    """Yield what step times are asked for: every published format of each model on every layout of one node."""
    for gpu in gpus:
        for model in models:
            for checkpoint in model.checkpoints:
                stated = StatedSettings(weight_format=checkpoint.weight_format)
                try:
                    resolved = resolve(model, gpu, stated, rules)
                    layouts = legal_layouts(resolved, StatedLayout()).usual
                except EngineError:
                    continue
                for layout in layouts:
                    if _is_common(layout):
                        yield Deployed(
                            model=model,
                            checkpoint=resolved.checkpoint,
                            gpu=gpu,
                            layout=layout,
                            kv_cache_dtype=resolved.kv_cache_dtype,
                            rules=rules,
                            keeps_states=keeps_states(model, resolved.settings),
                        )


def _is_common(layout: Layout) -> bool:
    """Return whether many ask for a layout: in one server, without stages, in a power of two."""
    gpus = layout.gpus_per_replica
    return gpus <= MOST_GPUS and gpus.bit_count() == 1 and layout.pipeline_parallel_size == 1


def build_tables(tables: KernelTables, wanted: Iterable[Deployed], closing: Event | None = None) -> int:
    """Build what is not kept yet; return how many were built.

    Args:
        tables: where they are kept.
        wanted: what is to be timed.
        closing: set when there is no time for more.
    """
    built = 0
    for key in wanted:
        if closing is not None and closing.is_set():
            break
        try:
            kernels = kernels_of(key)
            if tables.has(kernels):
                continue
            built += 1
            tables.of(kernels)
        except NotMeasuredError:
            continue
        if closing is not None:
            closing.wait(PAUSE_S)  # questions that wait for the builder go first
    return built


class Warming:
    """A thread that makes ready what will be asked for, until it is done or closed."""

    def __init__(self, tables: KernelTables, wanted: Iterable[Deployed]) -> None:
        """Begin.

        Args:
            tables: where tables are kept.
            wanted: what is to be timed.
        """
        self._closing = Event()
        self._thread = Thread(target=self._run, args=(tables, wanted), name="warming", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop, and wait for what is being built."""
        self._closing.set()
        self._thread.join()

    def _run(self, tables: KernelTables, wanted: Iterable[Deployed]) -> None:
        make_ready()
        build_tables(tables, wanted, self._closing)
