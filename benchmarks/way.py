"""The way of a question through the engine: which rooms it visits, in which order, and how often it climbs back up.

    python -m benchmarks.way [--users N | --rate R]

traces one `/size` with limits. Every function of the service is listed once, where it is first called;
functions of one module in a row are one stay. A climb leads from a room to a higher one.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Final

from service.catalog.engine_rules import rules_for
from service.catalog.keeper import seeded_snapshot
from service.engine.answers.size import size
from service.engine.fleet.questions import SizeQuestion, StatedSettings
from service.engine.inputs import Headroom, Limits, Load, StatedLayout
from service.performance.timers import KernelTimers

SERVICE: Final = Path(__file__).resolve().parents[1] / "service"
# From the highest room to the lowest; those on one floor share a number.
FLOORS: Final = {
    "answers": 0,
    "fleet": 1,
    "time": 2,
    "memory": 3,
    "engines": 4,
    "families": 4,
    "facts": 5,
    "layers": 6,
    "formats": 7,
    "inputs": 8,
}
LOWEST: Final = 9  # arithmetic, errors: no room of their own
BEHIND_TIME: Final = 2.5  # step times are called through a protocol: a room below time, outside the engine
COMPREHENSIONS: Final = ("<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "<lambda>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The first call of one function."""

    module: str  # below `service`
    function: str

    @property
    def floor(self) -> float:
        """Return how deep its room lies."""
        parts = self.module.split(".")
        if parts[0] != "engine":
            return BEHIND_TIME
        return FLOORS.get(parts[1], LOWEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """First calls in order, and what they come to."""

    calls: tuple[Call, ...]

    @property
    def stays(self) -> list[tuple[Call, list[str]]]:
        """Return the modules in order, each with the functions first called there."""
        grouped = groupby(self.calls, key=lambda call: (call.module, call.floor))
        runs = (list(run) for _, run in grouped)
        return [(run[0], [call.function for call in run]) for run in runs]

    @property
    def modules(self) -> int:
        """Return how many modules are visited."""
        return len({call.module for call in self.calls})

    @property
    def visits(self) -> int:
        """Return how many times a room is entered."""
        return sum(1 for _ in groupby(self.calls, key=lambda call: call.floor))

    @property
    def climbs(self) -> int:
        """Return how often the way leads from a room to a higher one."""
        return sum(after.floor < before.floor for before, after in pairwise(self.calls))

    def within_engine(self) -> "Way":
        """Return the way without what lies outside the engine."""
        return Way(calls=tuple(call for call in self.calls if call.module.startswith("engine.")))

    def text(self) -> str:
        """Return the calls, one stay a line; climbs are marked."""
        lines, above = [], -1.0
        for call, functions in self.stays:
            mark = "^" if call.floor < above else " "
            lines.append(f"{mark} {call.module.removeprefix('engine.'):<24}{', '.join(functions)}")
            above = call.floor
        return "\n".join(lines)


class Tracer:
    """Notes the first call of every function of the service."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._known: set[CodeType] = set()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call; what `sys.setprofile` wants."""
        code = frame.f_code
        if event != "call" or code in self._known or code.co_name in COMPREHENSIONS:
            return
        self._known.add(code)
        path = Path(code.co_filename)
        if path.is_relative_to(SERVICE):
            module = ".".join(path.relative_to(SERVICE).with_suffix("").parts)
            self.calls.append(Call(module=module, function=code.co_qualname))


def traced(question: SizeQuestion) -> Way:
    """Return the way of one question."""
    tracer = Tracer()
    sys.setprofile(tracer)
    try:
        size(question)
    finally:
        sys.setprofile(None)
    return Way(calls=tuple(tracer.calls))


def question_of(concurrent_requests: int | None, request_rate_per_s: float | None) -> SizeQuestion:
    """Return a question with limits on both latencies, about a model of 70 billion parameters on H100."""
    catalog = seeded_snapshot()
    return SizeQuestion(
        model=catalog.model("llama-3.3-70b"),
        gpu=catalog.gpu("h100"),
        load=Load(
            concurrent_requests=concurrent_requests,
            request_rate_per_s=request_rate_per_s,
            input_tokens=1_000,
            output_tokens=200,
        ),
        limits=Limits(ttft_s=0.5, tpot_s=0.04),
        layout=StatedLayout(),
        headroom=Headroom(),
        settings=StatedSettings(weight_format="fp8"),
        rules=rules_for("vllm"),
        offers=catalog.offers,
        timers=KernelTimers(),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the way of one question."""
    parser = argparse.ArgumentParser(description="the way of one /size with limits through the engine")
    load = parser.add_mutually_exclusive_group()
    load.add_argument("--users", type=int, help="concurrent requests")
    load.add_argument("--rate", type=float, default=40.0, help="requests per second; 40 unless stated")
    asked = parser.parse_args(arguments)
    way = traced(question_of(asked.users, None if asked.users else asked.rate))
    engine = way.within_engine()
    print(way.text())
    print(
        f"\n{len(engine.calls)} functions, {len(engine.stays)} stays in {engine.modules} modules, "
        f"{engine.visits} visits of rooms, {engine.climbs} climbs "
        f"({way.climbs} with step times counted as a room below time)"
    )


if __name__ == "__main__":
    main()
