"""Step timers for any model, GPU and layout: measured kernels, else the roofline, each built once."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from service.engine.derived import derived
from service.engine.engines.measured_here import MEASURED_HERE, Deployment, MeasuredSteps, steps_of
from service.engine.facts import ModelFacts
from service.engine.inputs import Gpu
from service.engine.kept import Kept
from service.engine.time.results import Basis
from service.engine.time.simulations import Simulations
from service.engine.time.steps import Deployed, Timing
from service.performance.between import between, neighbours, note_of
from service.performance.fitted import SOURCE, SPREAD, efficiencies_for, factors_of, generation_of, row_for
from service.performance.kernel_tables import KernelTables, NotMeasuredError, in_process
from service.performance.quantization_modes import quantization_modes
from service.performance.roofline import FLOOR, roofline_tables
from service.performance.stored import Kernels
from service.performance.tables import StepTables, calibrated
from service.performance.workload import Workload, workload_of

MEASURED: Final = "measured-kernels"
ROOFLINE: Final = "roofline"
KERNELS_SOURCE: Final = "aiconfigurator-core 0.12, kernels measured on this GPU (github.com/ai-dynamo/aiconfigurator)"
MAX_TIMERS: Final = 2048  # about 10 kB each
# Keys of a config that describe how it is stored; the modes say it instead.
STORAGE_KEYS: Final = frozenset({"quantization_config", "compression_config", "hf_quant_config"})


class KernelTimers:
    """Builds timers, and keeps them with what was simulated; implements `StepTimers`. Safe to share between threads."""

    def __init__(self, tables: KernelTables | None = None) -> None:
        """Start without any.

        Args:
            tables: where measured kernels are found; None: built in this process, and kept in its memory.
        """
        self.simulations = Simulations()
        self.tables = tables or in_process()
        self._timers: Kept[Timing] = Kept(MAX_TIMERS)
        self._quick: Kept[Timing] = Kept(MAX_TIMERS // 4)

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
        return self._timers.get_or(key.key, lambda: build_timer(key, self.tables))

    def quick(self, key: Deployed) -> Timing | None:
        """Return the roofline's times of a deployment: ready in milliseconds, the same whenever they are asked for."""
        if not _can_time(key.gpu):
            return None
        return self._quick.get_or(key.key, lambda: roofline_timer(key, "a quick estimate"))


def _can_time(gpu: Gpu) -> bool:
    """Return whether a GPU states any peak to compute with."""
    return bool(gpu.peak_flop_per_s)


def build_timer(key: Deployed, tables: KernelTables) -> Timing:
    """Return new times: measured kernels where there are any, else the roofline, which says why."""
    try:
        measured = measured_step_tables(key, tables)
        return _calibrated(key, measured, MEASURED, _stand_in(key, measured))
    except NotMeasuredError as refusal:
        return _timer_between(key, tables) or roofline_timer(key, str(refusal))


def _timer_between(key: Deployed, tables: KernelTables) -> Timing | None:
    """Return times between those of fewer and of more copies of the attention; None where either was not measured."""
    pair = neighbours(key.layout)
    if pair is None or key.gpu.measured_as is None:
        return None
    try:
        fewer, more = ((layout, measured_step_tables(replace(key, layout=layout), tables)) for layout in pair)
        measured = between(key, fewer, more)
    except NotMeasuredError:
        return None
    stand_in = _stand_in(key, measured)
    return _calibrated(key, measured, MEASURED, "; ".join(filter(None, (note_of(key.layout, *pair), stand_in))))


def _stand_in(key: Deployed, measured: StepTables) -> str:
    """Return which kernels stand in for a format whose own were not measured on a GPU; nothing where they were."""
    if not measured.place:
        return ""
    modes = kernels_of(key).modes[measured.place]
    named = ", ".join(f"{name} {mode}" for name, mode in modes.items())
    return f"{key.checkpoint.quantization.scheme} was not measured on {key.gpu.id}; kernels of {named} stand in"


def roofline_timer(key: Deployed, note: str) -> Timing:
    """Return new times from data sheets, and why they are not measured."""
    return _calibrated(key, estimated_step_tables(key), ROOFLINE, note)


def estimated_step_tables(key: Deployed) -> StepTables:
    """Return step times from data sheets and the efficiency of kernels, before any factor."""
    return roofline_tables(workload(key), key.gpu, key.layout, efficiencies_for(key.gpu))


def workload(key: Deployed) -> Workload:
    """Return what one rank of a deployment reads and computes."""
    return workload_of(key.model.architecture, key.checkpoint.quantization, key.gpu, key.layout, key.kv_cache_dtype)


def _calibrated(key: Deployed, tables: StepTables, basis: str, note: str) -> Timing:
    row = row_for(basis, key.rules.engine, key.rules.rules_version, generation_of(key.gpu), kernel_class(key))
    factors = factors_of(row)
    here = steps_of(key.rules.measured, _place(key)) if key.rules.measured else None
    if here is not None:
        factors = factors.scaled(here)
    return Timing(
        steps=calibrated(
            tables,
            roofline_tables(workload(key), key.gpu, key.layout, FLOOR),
            factors,
            hides_host=hides_host(key),
        ),
        request_overhead=factors.request_overhead,
        basis=Basis(
            name=basis,
            is_measured=basis == MEASURED,
            source=KERNELS_SOURCE if basis == MEASURED else note,
            note=note,
            overhead_source=SOURCE,
            expected_error_fraction=row.expected_error_fraction,
            stated_pace_error_fraction=row.pace_error_fraction,
        )
        if here is None
        else _measured_here(here),
    )


def _measured_here(here: MeasuredSteps) -> Basis:
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


def measured_step_tables(key: Deployed, tables: KernelTables | None = None) -> StepTables:
    """Return measured tables for the first quantization mode that has data.

    Raises:
        NotMeasuredError: none has; the message is that of the most faithful one.
    """
    return (tables or in_process()).of(kernels_of(key))


def kernels_of(key: Deployed) -> Kernels:
    """Return which measured kernels stand for a deployment.

    Raises:
        NotMeasuredError: none can.
    """
    system = key.gpu.measured_as
    if system is None:
        raise NotMeasuredError(f"no kernels were measured on {key.gpu.id}")
    if not key.model.config_json:
        raise NotMeasuredError("the model's config is not known")
    return Kernels(
        config_json=_config_as_measured(key.model),
        system=system,
        layout=key.layout,
        engine=key.rules.engine,
        modes=tuple(
            quantization_modes(
                key.checkpoint.quantization,
                key.gpu,
                key.rules.engine,
                key.kv_cache_dtype,
                has_latents=_has_latents(key.model),
            )
        ),
    )


def _has_latents(model: ModelFacts) -> bool:
    """Return whether layers keep latents, whose kernels were measured with the matrices around them."""
    needs = (need for mixer in model.architecture.mixers for need in mixer.kernel_needs)
    return any(need.kind in ("latent", "sparse") for need in needs)


@derived(1)
def _config_as_measured(model: ModelFacts) -> str:
    """Return a config without its storage, under the name of a class with the same matrices that the library knows."""
    config = _without_storage(json.loads(model.config_json))
    same_matrices = model.architecture.measured_as
    if same_matrices is not None:
        config |= {"architectures": [same_matrices[0]], "model_type": same_matrices[1]}
    return json.dumps(config, sort_keys=True)


def _without_storage(config: Mapping[str, object]) -> dict[str, object]:
    """Return the config, and the configs inside it, without their quantization."""
    return {
        name: _without_storage(value) if isinstance(value, dict) else value
        for name, value in config.items()
        if name not in STORAGE_KEYS
    }


def hides_host(key: Deployed) -> bool:
    """Return whether the host plans an iteration while kernels of the one before run.

    What a request adds to an iteration of recurrent layers is kernels' time: its state is read and written.

    Source:
        vLLM 0.14 `config/vllm.py` (`async_scheduling` by default); SGLang `--disable-overlap-schedule`; TensorRT-LLM
        `disable_overlap_scheduler`.
    """
    is_recurrent = any(mixer.is_recurrent for mixer in key.model.architecture.mixers)
    return key.rules.steps_planned_ahead > 0 and not is_recurrent


def kernel_class(key: Deployed) -> str:
    """Return which kernels dominate: dense or experts, recurrent or not, the format, and whether experts are dealt out.

    Iterations with prompts launch several times as many kernels for a recurrent layer, outside whole-step graphs.
    Ranks that attend together and hold whole experts wait for the one whose experts were chosen most.
    """
    architecture = key.model.architecture
    has_experts, recurrent = architecture.has_experts, any(mixer.is_recurrent for mixer in architecture.mixers)
    scheme = key.checkpoint.quantization.scheme
    # Blocks of fp8 have kernels of their own; where they were not measured, others stand in, and are as far off.
    stored = "bf16" if scheme == "none" else scheme if scheme == "fp8-block" else scheme.split("-")[0]
    dealt = SPREAD if has_experts and key.layout.expert_parallel and key.layout.data_parallel_size == 1 else ""
    return f"{'experts' if has_experts else 'dense'}{'-recurrent' if recurrent else ''}-{stored}{dealt}"
