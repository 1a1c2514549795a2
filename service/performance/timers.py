"""Step timers for any model, GPU and layout: measured kernels, else the roofline, each built once."""

import json
from collections.abc import Iterable, Mapping
from threading import Event, RLock, Thread
from typing import Final

from service.engine.inputs import Gpu
from service.engine.time.steps import Deployed
from service.performance.calibration import efficiencies_for, factors_of, row_for
from service.performance.measured import NotMeasuredError, measured_tables, read_system
from service.performance.modes import quantization_modes
from service.performance.roofline import FLOOR, roofline_tables
from service.performance.tables import StepTables, TabledSteps, calibrated
from service.performance.workload import Workload, workload_of

MEASURED: Final = "measured-kernels"
ROOFLINE: Final = "roofline"
MAX_TIMERS: Final = 4096
PAUSE_S: Final = 0.05
# Read ahead in this order: the systems most questions are about come first. Each takes about a second and 20-40 MB.
COMMON_SYSTEMS: Final = (
    "h100_sxm",
    "h200_sxm",
    "b200_sxm",
    "a100_sxm",
    "l40s",
    "gb200",
    "b300_sxm",
    "gb300",
    "rtx_pro_6000_server",
)
# Keys of a config that describe how it is stored; the modes say it instead.
STORAGE_KEYS: Final = frozenset({"quantization_config", "compression_config", "hf_quant_config"})


class KernelTimers:
    """Builds timers, and keeps them; implements `StepTimers`. Safe to share between threads."""

    def __init__(self) -> None:
        """Start without any."""
        self._timers: dict[Deployed, TabledSteps] = {}
        self._quick: dict[Deployed, TabledSteps] = {}
        # aiconfigurator-core loads tables into module-level caches; one at a time.
        self._lock = RLock()
        self._closing = Event()
        self._warm_up: Thread | None = None

    def close(self) -> None:
        """Stop reading ahead, and wait for the table being read: the library must not be cut off in mid-call."""
        self._closing.set()
        if self._warm_up is not None:
            self._warm_up.join()

    def timer(self, key: Deployed) -> TabledSteps | None:
        """Return the timer of a deployment; the first call of a combination builds its tables."""
        if not _can_time(key.gpu):
            return None
        found = self._timers.get(key)
        if found is not None:
            return found
        with self._lock:
            found = self._timers.get(key)
            if found is None:
                if len(self._timers) >= MAX_TIMERS:
                    self._timers.clear()
                found = self._timers[key] = build_timer(key)
        return found

    def quick(self, key: Deployed) -> TabledSteps | None:
        """Return the roofline timer of a deployment: ready in milliseconds, and the same whenever it is asked for."""
        if not _can_time(key.gpu):
            return None
        found = self._quick.get(key)
        if found is None:
            if len(self._quick) >= MAX_TIMERS:
                self._quick.clear()
            found = self._quick[key] = roofline_timer(key, "a quick estimate")
        return found

    def warm_up(self, systems: Iterable[str] = COMMON_SYSTEMS) -> Thread:
        """Read the kernels of common GPUs in a thread, until `close`; return the thread."""
        self._warm_up = Thread(target=self._read, args=(tuple(systems),), name="warm-up", daemon=True)
        self._warm_up.start()
        return self._warm_up

    def _read(self, systems: tuple[str, ...]) -> None:
        for system in systems:
            if self._closing.wait(PAUSE_S):  # questions that wait for the lock go first
                return
            with self._lock:
                read_system(system)


def _can_time(gpu: Gpu) -> bool:
    """Return whether a GPU states any peak to compute with."""
    return bool(gpu.peak_flop_per_s)


def build_timer(key: Deployed) -> TabledSteps:
    """Return a new timer: measured kernels where there are any, else the roofline, which says why."""
    try:
        tables = measured_step_tables(key)
    except NotMeasuredError as refusal:
        return roofline_timer(key, str(refusal))
    return _calibrated(key, tables, MEASURED, "")


def roofline_timer(key: Deployed, note: str) -> TabledSteps:
    """Return a new timer from data sheets, and why it is not measured."""
    return _calibrated(key, estimated_step_tables(key), ROOFLINE, note)


def estimated_step_tables(key: Deployed) -> StepTables:
    """Return step times from data sheets and the efficiency of kernels, before any factor."""
    return roofline_tables(workload(key), key.gpu, key.layout, efficiencies_for(key.gpu))


def workload(key: Deployed) -> Workload:
    """Return what one rank of a deployment reads and computes."""
    return workload_of(key.model.architecture, key.checkpoint.quantization, key.gpu, key.layout, key.kv_cache_dtype)


def _calibrated(key: Deployed, tables: StepTables, basis: str, note: str) -> TabledSteps:
    row = row_for(basis, key.rules.engine, key.rules.rules_version, key.gpu.architecture, kernel_class(key))
    return calibrated(
        tables,
        roofline_tables(workload(key), key.gpu, key.layout, FLOOR),
        factors_of(row),
        steps_planned_ahead=key.rules.steps_planned_ahead,
        basis=basis,
        basis_note=note,
        expected_error_fraction=row.expected_error_fraction,
    )


def measured_step_tables(key: Deployed) -> StepTables:
    """Return measured tables for the first quantization mode that has data.

    Raises:
        NotMeasuredError: none has; the message is that of the most faithful one.
    """
    system = key.gpu.measured_as
    if system is None:
        raise NotMeasuredError(f"no kernels were measured on {key.gpu.id}")
    if not key.model.config_json:
        raise NotMeasuredError("the model's config is not known")
    config = _without_storage(json.loads(key.model.config_json))
    if (same_matrices := key.model.architecture.measured_as) is not None:  # under a name that the library knows
        config |= {"architectures": [same_matrices[0]], "model_type": same_matrices[1]}
    first: NotMeasuredError | None = None
    for modes in quantization_modes(key.checkpoint.quantization, key.gpu, key.rules.engine, key.kv_cache_dtype):
        try:
            return measured_tables(config, system=system, layout=key.layout, engine=key.rules.engine, modes=modes)
        except NotMeasuredError as refusal:
            first = first or refusal
    raise first or NotMeasuredError("no kernels match the weight format")


def _without_storage(config: Mapping[str, object]) -> dict[str, object]:
    """Return the config, and the configs inside it, without their quantization."""
    return {
        name: _without_storage(value) if isinstance(value, dict) else value
        for name, value in config.items()
        if name not in STORAGE_KEYS
    }


def kernel_class(key: Deployed) -> str:
    """Return which kernels dominate: dense or experts, and how weights are stored; as in calibration.yaml."""
    has_experts = key.model.architecture.has_experts
    scheme = key.checkpoint.quantization.scheme
    stored = "bf16" if scheme == "none" else scheme.split("-")[0]
    return f"{'experts' if has_experts else 'dense'}-{stored}"
