"""What an answer rests on that callers measured and stored: which rows, and how near to them it comes."""

from collections.abc import Iterator
from typing import Final

from service.engine.engines.measured_here import MeasuredMemory, memory_of
from service.engine.fleet.results import Assumption, Scalar
from service.engine.memory.plan import MemoryPlan
from service.engine.time.results import Basis

HERE: Final = "what is left between the stored measurements and this prediction; use_measurements=false ignores them"


def memory_measured_here(plan: MemoryPlan) -> Iterator[Assumption]:
    """Yield which stored start-ups the ledger rests on, and how near to their cache it comes."""
    here = _here(plan)
    if here is not None:
        yield _note("measured_memory", here.id, here.source)
        yield _note("measured_memory_error_fraction", here.error_fraction, HERE)


def terms_source(plan: MemoryPlan) -> str:
    """Return where the measured terms of a ledger come from: published start-ups, and those stored that change them."""
    published, here = plan.rules.measured_source, _here(plan)
    return published if here is None else f"{published}; changed by the stored {here.id}, as measured_memory tells"


def _here(plan: MemoryPlan) -> MeasuredMemory | None:
    """Return what stored start-ups of a plan's model, GPU and layout measured; None where none did."""
    place = plan.model.id, plan.gpu.id, plan.layout, plan.checkpoint.weight_format
    return memory_of(plan.rules.measured, *place)


def steps_measured_here(basis: Basis) -> Iterator[Assumption]:
    """Yield how near to the stored benchmarks step times come; which they are says their basis."""
    yield _note("measured_steps_error_fraction", basis.expected_error_fraction, HERE)


def _note(name: str, value: Scalar, source: str) -> Assumption:
    return Assumption(name=name, value=value, origin="measured", source=source)
