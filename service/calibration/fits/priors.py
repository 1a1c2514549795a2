"""What a fit of step times expects before it looks at a run, how firmly, and how far it may go."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from service.calibration.logs.engines import LOGS
from service.performance.known import MEASURED
from service.performance.tables import Factors

Key = tuple[str, str, str, str, str]  # basis, engine, rules version, GPU generation, kernels

# What a fit keeps to where its runs say nothing: kernels as they were measured, and a fast host.
START: Final = Factors(
    decode_factor=0.95,
    small_prefill_factor=0.9,
    large_prefill_factor=1.0,
    step_overhead_s=0.0005,
    sequence_overhead_s=0.00001,
    mixed_overhead_s=0.001,
    request_overhead_s=0.005,
    tokenizer_s_per_token=5e-7,
)
# How far from it each constant goes as easily as one figure goes off by `ROBUST_ERROR`.
EASE: Final[Mapping[str, float]] = {
    "decode_factor": 0.15,
    "small_prefill_factor": 0.2,
    "large_prefill_factor": 0.3,
    "step_overhead_s": 0.001,
    "sequence_overhead_s": 0.00002,
    "mixed_overhead_s": 0.002,
    "request_overhead_s": 0.005,
    "tokenizer_s_per_token": 1e-6,
}
# name: scale of one step of the search, lowest, highest
BOUNDS: Final[Mapping[str, tuple[float, float, float]]] = {
    "decode_factor": (1.0, 0.5, 1.8),  # kernels were measured once, and engines choose others since
    "small_prefill_factor": (1.0, 0.6, 2.0),
    "large_prefill_factor": (1.0, 0.6, 2.0),
    "step_overhead_s": (0.003, 0.0, 0.01),
    "sequence_overhead_s": (0.00005, 0.0, 0.0002),
    # A step outside whole-step graphs launches some 15 kernels a layer at 5 us each: 6 ms for 80 layers.
    # Recurrent layers launch several times as many.
    "mixed_overhead_s": (0.005, 0.0, 0.03),
    "request_overhead_s": (0.01, 0.0, 0.03),
    "tokenizer_s_per_token": (0.000002, 0.0, 0.00001),
    # vLLM issue 45709: 34.4 ms for the 48 layers of Qwen3-30B-A3B without any graph.
    "layer_launch_s": (0.0005, 0.0, 0.0012),
}
SCALES: Final = ("decode_factor", "small_prefill_factor", "large_prefill_factor")

# Where a runtime's kernels were measured themselves, its host was not: a slow batch is laid to the host first, and what
# launching takes hides behind kernels, so that little of it is left to add.
LAUNCHED_START: Final = replace(START, layer_launch_s=0.0002)
LAUNCHED_EASE: Final[Mapping[str, float]] = {
    **EASE,
    "decode_factor": 0.1,
    "small_prefill_factor": 0.1,
    "large_prefill_factor": 0.15,
    "sequence_overhead_s": 0.00006,
    "layer_launch_s": 0.0002,
}
LAUNCHED_BOUNDS: Final[Mapping[str, tuple[float, float, float]]] = {**BOUNDS, "mixed_overhead_s": (0.005, 0.0, 0.005)}
# What an engine that launches prompts kernel by kernel is expected to take where nothing hides it: vLLM issue 45709.
SINGLY_S: Final = 0.0344 / 48
SINGLY_BOUNDS: Final = (0.0005, 0.0, 0.004)  # attention to latents and recurrent layers launch several times as many
SINGLY: Final = frozenset(engine for engine, logs in LOGS.items() if logs.launches_prompts)
BUILT_AHEAD: Final = frozenset(engine for engine, logs in LOGS.items() if logs.last_built_version is not None)


def is_launched(key: Key) -> bool:
    """Return whether the launch of single kernels is a constant of a class beside kernels that were measured.

    An estimate has a latency of each layer of its own (`Efficiencies.layer_latency_s`), which is that of graphs. An
    engine that was built ahead is launched as a whole, and its kernels are not those that were measured, of its newer
    runtime.
    """
    basis, engine, *_ = key
    return basis == MEASURED and engine not in BUILT_AHEAD


def start_of(key: Key) -> Factors:
    """Return what is expected of a class before any other is known."""
    start = LAUNCHED_START if is_launched(key) else START
    return replace(start, layer_launch_s=SINGLY_S) if key[1] in SINGLY else start


def ease_of(key: Key) -> Mapping[str, float]:
    """Return the constants of a class that are fitted, and how easily each goes from what is expected."""
    ease = LAUNCHED_EASE if is_launched(key) else EASE
    return {**ease, "layer_launch_s": SINGLY_S} if key[1] in SINGLY else ease


def bounds_of(key: Key) -> Mapping[str, tuple[float, float, float]]:
    """Return the scale of one step of the search, the lowest and the highest value of each constant."""
    bounds = LAUNCHED_BOUNDS if is_launched(key) else BOUNDS
    return {**bounds, "layer_launch_s": SINGLY_BOUNDS} if key[1] in SINGLY else bounds
