"""Step timers for any model, GPU and layout: measured kernels, else the roofline, each built once."""

from dataclasses import replace
from typing import Final

from service.engine.engines.measured_here import MEASURED_HERE, Deployment, MeasuredSteps, steps_of
from service.engine.fleet.checkpoints import own_checkpoint
from service.engine.inputs import Gpu
from service.engine.kept import Kept
from service.engine.memory.share import captures_prompts
from service.engine.time.results import Basis
from service.engine.time.simulations import Simulations
from service.engine.time.steps import Deployed, Timing
from service.performance.chunked import chunked_states
from service.performance.estimated import own_share_of, workload
from service.performance.fitted import SOURCE, factors_of
from service.performance.formats import Rated, in_order, moved
from service.performance.kernel_tables import KernelTables, in_process
from service.performance.known import MEASURED, ROOFLINE, Knowledge, Times, better_known
from service.performance.spread import with_spread
from service.performance.states import untabled_states
from service.performance.tables import Factors, TabledSteps, calibrated

KERNELS_SOURCE: Final = "aiconfigurator-core 0.12, kernels measured on this GPU (github.com/ai-dynamo/aiconfigurator)"
# SGLang pull request 12160: a prompt of one token takes 82.64 ms without graphs, and 23.10 with graphs of pieces,
# between which attention is launched by itself.
CAPTURED_FRACTION: Final = 23.10 / 82.64
MAX_TIMERS: Final = 12_288  # about 3 kB each: a question looks at a hundred of them
MAX_QUICK: Final = 4_096
MAX_FORMATS: Final = 1_024  # about 8 kB each, and tables that are kept beside them


class KernelTimers:
    """Builds timers, and keeps them with what was simulated; implements `StepTimers`. Safe to share between threads."""

    def __init__(self, tables: KernelTables | None = None) -> None:
        """Start without any.

        Args:
            tables: where measured kernels are found; None: built in this process, and kept in its memory.
        """
        self.simulations = Simulations()
        self.tables = tables or in_process()
        self._formats = Formats(self.tables)
        self._timers: Kept[Timing] = Kept(MAX_TIMERS)
        self._quick: Kept[Timing] = Kept(MAX_QUICK)

    def close(self) -> None:
        """Give back what building tables took."""
        self.tables.close()

    def timer(self, key: Deployed) -> Timing | None:
        """Return the times of a deployment; the first call of a combination builds its tables."""
        if not _can_time(key.gpu):
            return None
        kept = self._timers.get(key.key)
        if kept is not None:
            return kept
        return self._timers.get_or(key.key, lambda: build_timer(key, self._formats))

    def quick(self, key: Deployed) -> Timing | None:
        """Return the roofline's times of a deployment: ready in milliseconds, the same whenever they are asked for."""
        if not _can_time(key.gpu):
            return None
        return self._quick.get_or(key.key, lambda: roofline_timer(key, "a quick estimate", self._formats.known))


def _can_time(gpu: Gpu) -> bool:
    """Return whether a GPU states any peak to compute with."""
    return bool(gpu.peak_flop_per_s)


class Formats:
    """What is known of a model's formats on one layout, kept: each is put in order beside several others."""

    def __init__(self, tables: KernelTables) -> None:
        """Start with nothing known but where measured kernels are found."""
        self.known = Knowledge(tables)
        self._rated: Kept[Rated] = Kept(MAX_FORMATS)

    def ordered(self, times: Times, here: MeasuredSteps | None) -> Rated:
        """Return a deployment's step times, in order beside those of the formats that are better known, the best last.

        Args:
            times: of the deployment before its factors.
            here: what a caller measured of a deployment whose times are asked for, in any format.
        """

        def ordered() -> Rated:
            steps = self._in_proportion(times, here)
            for other in better_known(times, self.known):
                steps = in_order(steps, self.ordered(other, here))
            return steps

        return self._rated.get_or((times.key.key, here), ordered)

    def _in_proportion(self, times: Times, here: MeasuredSteps | None) -> Rated:
        """Return step times under their factors, moved with those of the published format where they rest on these."""
        own = _calibrated(times, here, self.known)
        if not times.is_in_proportion:
            return own
        published = self.known.nearest(replace(times.key, checkpoint=own_checkpoint(times.key.model)))
        return moved(own, _calibrated(published, here, self.known), self.ordered(published, here))


def build_timer(key: Deployed, formats: Formats) -> Timing:
    """Return new times: measured kernels where there are any, else the roofline, which says why."""
    times, here = formats.known.nearest(key), _measured_here(key)
    return _timing(times, formats.ordered(times, here).steps, here)


def roofline_timer(key: Deployed, note: str, known: Knowledge) -> Timing:
    """Return new times from data sheets, and why they are not measured."""
    times, here = known.estimated(key, note), _measured_here(key)
    return _timing(times, _calibrated(times, here, known).steps, here)


def _calibrated(times: Times, here: MeasuredSteps | None, known: Knowledge) -> Rated:
    """Return step times under their factors, with what they are put in order by."""
    by_roofline, key = known.estimates(times.key), times.key
    steps = calibrated(
        with_spread(times.tables, workload(key), key.gpu, key.layout),
        by_roofline.floor,
        _factors(times, here),
        hides_host=hides_host(key),
        chunked_states=chunked_states(key),
        untabled_states=untabled_states(key) if times.basis == MEASURED else 0.0,
        layers=launched_layers(key),
    )
    return Rated(steps=steps, estimated=by_roofline.estimated, floor=by_roofline.floor)


def _factors(times: Times, here: MeasuredSteps | None) -> Factors:
    factors = factors_of(times.row)
    return factors if here is None else factors.scaled(here)


def _timing(times: Times, steps: TabledSteps, here: MeasuredSteps | None) -> Timing:
    is_measured = times.basis == MEASURED and not times.is_carried
    own = Basis(
        name=ROOFLINE if times.is_carried else times.basis,
        is_measured=is_measured,
        source=KERNELS_SOURCE if is_measured else times.note,
        note=times.note,
        overhead_source=SOURCE,
        expected_error_fraction=times.row.expected_error_fraction,
        stated_pace_error_fraction=times.row.pace_error_fraction,
    )
    return Timing(
        steps=steps,
        request_overhead=_factors(times, here).request_overhead,
        basis=own if here is None else _basis_here(here),
        own_share=own_share_of(times.key),
    )


def _measured_here(key: Deployed) -> MeasuredSteps | None:
    return steps_of(key.rules.measured, _place(key)) if key.rules.measured else None


def _basis_here(here: MeasuredSteps) -> Basis:
    return Basis(
        name=MEASURED_HERE,
        is_measured=True,
        source=here.source,
        note="",
        overhead_source=here.source,
        expected_error_fraction=here.error_fraction,
    )


def _place(key: Deployed) -> Deployment:
    """Return a deployment as callers measure it."""
    return Deployment(
        model=key.model.id,
        gpu=key.gpu.id,
        layout=key.layout,
        weight_format=key.checkpoint.weight_format,
        kv_cache_dtype=key.kv_cache_dtype,
    )


def hides_host(key: Deployed) -> bool:
    """Return whether the host plans an iteration while kernels of the one before run.

    Source:
        vLLM 0.14 `config/vllm.py` (`async_scheduling` by default, hybrids too; pull request 33352 takes out those that
        keep states of prefixes, which none does unasked); its hybrids gain 16 % by it (TensorRT-LLM issue 8436). SGLang
        `--disable-overlap-schedule`, which a prefix cache of recurrent layers without buffers beside their states sets
        (pull request 13057, issue 27418), and `--disable-radix-cache` not; TensorRT-LLM `disable_overlap_scheduler`.
    """
    is_held = key.keeps_states and key.rules.plan.waits_for_states
    return key.rules.steps_planned_ahead > 0 and not is_held


def launched_layers(key: Deployed) -> float:
    """Return the layers whose kernels an iteration with prompts launches, those of every stage it passes. [count].

    Where an engine's versions differ in whether prompts run as graphs, layers of a graph count for what launching its
    pieces takes of what launching their kernels does.
    """
    layers, reserve = float(len(key.model.architecture.layers)), key.rules.static_reserve
    if reserve is None or reserve.prompts_uncaptured_for is None:
        return layers
    architecture, release = key.model.architecture, key.rules.release
    captures = captures_prompts(reserve.prompts_uncaptured_for, architecture, key.gpu, key.layout, release)
    return CAPTURED_FRACTION * layers if captures else layers
