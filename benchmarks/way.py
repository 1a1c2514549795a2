"""The way of a question through the engine: which rooms it visits, in which order, and how often it climbs back up.

    python -m benchmarks.way [--users N | --rate R] [--guide FILE]

traces one `/size` with limits. Every function of the service is listed once, where it is first called;
functions of one module in a row are one stay. A climb is a call from a module in a lower room to one in a
higher (50 of them at a9aece5); a return goes on in a higher room after a lower one has answered (87).
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
KEEPING: Final = ("engine.derived", "engine.kept")  # what was found out before is handed on: no stay of its own
BEGIN: Final = "<!-- way:begin -->"
END: Final = "<!-- way:end -->"
COMPREHENSIONS: Final = ("<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "<lambda>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The first call of one function."""

    module: str  # below `service`
    function: str

    @property
    def is_engine(self) -> bool:
        """Return whether it is part of the engine."""
        return self.module.startswith("engine.")

    @property
    def room(self) -> str:
        """Return the room its module stands in."""
        return self.module.split(".")[1] if self.is_engine else self.module.split(".")[0]

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
    called_up: tuple[tuple[Call, Call], ...]  # from a lower room to a higher one: who calls whom

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
    def returns(self) -> int:
        """Return how often the way goes on in a higher room, once a lower one has answered."""
        return sum(after.floor < before.floor for before, after in pairwise(self.calls))

    def within_engine(self) -> "Way":
        """Return the way without what lies outside the engine."""
        return Way(
            calls=tuple(call for call in self.calls if call.is_engine),
            called_up=tuple(pair for pair in self.called_up if pair[0].is_engine),
        )

    def guide(self) -> str:
        """Return the modules where they are first called, one visit of a room a line."""
        known: set[str] = set()
        lines = []
        for room, run in groupby(self.calls, key=lambda call: call.room):
            modules = [call.module.removeprefix("engine.").removeprefix(f"{room}.") for call in run]
            new = [name for name in dict.fromkeys(modules) if f"{room}.{name}" not in known]
            known |= {f"{room}.{name}" for name in new}
            if new:
                lines.append(f"{room:12}{', '.join(new)}")
        return "\n".join(lines)

    def text(self) -> str:
        """Return the calls, one stay a line; returns to a higher room are marked."""
        lines, above = [], -1.0
        for call, functions in self.stays:
            mark = "^" if call.floor < above else " "
            lines.append(f"{mark} {call.module.removeprefix('engine.'):<29}{', '.join(functions)}")
            above = call.floor
        return "\n".join(lines)


class Tracer:
    """Notes the first call of every function of the service, and who calls up from a lower room."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.called_up: dict[tuple[Call, Call], None] = {}
        self._known: dict[CodeType, Call | None] = {}

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call; what `sys.setprofile` wants."""
        code = frame.f_code
        if event != "call":
            return
        is_new = code not in self._known
        call = self._call_of(code)
        if call is None:
            return
        if is_new and code.co_name not in COMPREHENSIONS:
            self.calls.append(call)
        caller = self._caller(frame)
        if caller is not None and call.floor < caller.floor:
            self.called_up[caller, call] = None

    def _call_of(self, code: CodeType) -> Call | None:
        """Return what is called; None outside the service, and for what only keeps."""
        if code not in self._known:
            path = Path(code.co_filename)
            module = ".".join(path.relative_to(SERVICE).with_suffix("").parts) if path.is_relative_to(SERVICE) else ""
            is_stay = module and module not in KEEPING
            self._known[code] = Call(module=module, function=code.co_qualname) if is_stay else None
        return self._known[code]

    def _caller(self, frame: FrameType) -> Call | None:
        """Return the function of the service that a frame was called by, through whatever lies between."""
        above = frame.f_back
        while above is not None:
            call = self._call_of(above.f_code)
            if call is not None:
                return call
            above = above.f_back
        return None


def traced(question: SizeQuestion) -> Way:
    """Return the way of one question."""
    tracer = Tracer()
    sys.setprofile(tracer)
    try:
        size(question)
    finally:
        sys.setprofile(None)
    return Way(calls=tuple(tracer.calls), called_up=tuple(tracer.called_up))


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
    parser.add_argument("--guide", type=Path, help="file whose list of modules is written, between its markers")
    asked = parser.parse_args(arguments)
    way = traced(question_of(asked.users, None if asked.users else asked.rate))
    engine = way.within_engine()
    print(way.text())
    print(
        f"\n{len(engine.calls)} functions, {len(engine.stays)} stays in {engine.modules} modules, "
        f"{engine.visits} visits of rooms, {engine.returns} returns, {len(engine.called_up)} climbs "
        f"({len(way.called_up)} with step times counted as a room below time)"
    )
    if asked.guide is not None:
        text = asked.guide.read_text(encoding="utf-8")
        asked.guide.write_text(with_way(text, way), encoding="utf-8")


def with_way(text: str, way: Way) -> str:
    """Return a guide with a way between its markers."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n```\n{way.guide()}\n```\n{END}{after}"


if __name__ == "__main__":
    main()
