"""The engine's front door. Pure arithmetic: values in, values out; no I/O, no clock, no framework.

Three questions are answered whole (`size`, `capacity`, `recommend`); `plan_replica` plans the memory of one stated
replica, `ledger_terms` takes its ledger apart, and `benchmarked` serves a load on it. Whoever compares the engine with
what was measured asks here, like anybody.
"""

from service.engine.answers.capacity import capacity
from service.engine.answers.recommend import recommend
from service.engine.answers.replica import plan_replica
from service.engine.answers.size import size
from service.engine.arithmetic import GIB, MILLISECONDS_PER_S
from service.engine.engines.registry import engine_named
from service.engine.engines.rules import EngineRules, batch_defaults, gib, has_unified_memory
from service.engine.errors import EngineError
from service.engine.facts import Checkpoint, ModelFacts, text_only
from service.engine.families import parse_architecture, stated_quantization
from service.engine.fleet.layouts import check_layout
from service.engine.fleet.questions import CapacityQuestion, RecommendQuestion, SizeQuestion, StatedSettings
from service.engine.formats.quantization import Quantization, parse_quantization, standard_quantization
from service.engine.inputs import HALF_FORMATS, EngineName, Gpu, KvCacheDtype, Layout, SpeculativeMethod, WeightFormat
from service.engine.layers import Architecture
from service.engine.memory.plan import MemoryPlan
from service.engine.memory.share import launched_share
from service.engine.memory.terms import LedgerTerms, ledger_terms
from service.engine.memory.weights import rank_weights
from service.engine.time.batching import copies_in
from service.engine.time.benchmark import benchmarked, streams_of
from service.engine.time.confidence import COVERED_FRACTION, slower_timing
from service.engine.time.lengths import EmpiricalLength, FixedLength, Length, LogNormalLength, UniformLength
from service.engine.time.results import GROWING, Basis
from service.engine.time.samples import ScheduleResult
from service.engine.time.steps import Deployed, RequestOverhead, StepTimers, Timing, deployed
from service.engine.time.traffic import Sender, SimulatedLoad, Traffic

__all__ = [
    "COVERED_FRACTION",
    "GIB",
    "GROWING",
    "HALF_FORMATS",
    "MILLISECONDS_PER_S",
    "Architecture",
    "Basis",
    "CapacityQuestion",
    "Checkpoint",
    "Deployed",
    "EmpiricalLength",
    "EngineError",
    "EngineName",
    "EngineRules",
    "FixedLength",
    "Gpu",
    "KvCacheDtype",
    "Layout",
    "LedgerTerms",
    "Length",
    "LogNormalLength",
    "MemoryPlan",
    "ModelFacts",
    "Quantization",
    "RecommendQuestion",
    "RequestOverhead",
    "ScheduleResult",
    "Sender",
    "SimulatedLoad",
    "SizeQuestion",
    "SpeculativeMethod",
    "StatedSettings",
    "StepTimers",
    "Timing",
    "Traffic",
    "UniformLength",
    "WeightFormat",
    "batch_defaults",
    "benchmarked",
    "capacity",
    "check_layout",
    "copies_in",
    "deployed",
    "engine_named",
    "gib",
    "has_unified_memory",
    "launched_share",
    "ledger_terms",
    "parse_architecture",
    "parse_quantization",
    "plan_replica",
    "rank_weights",
    "recommend",
    "size",
    "slower_timing",
    "standard_quantization",
    "stated_quantization",
    "streams_of",
    "text_only",
]
