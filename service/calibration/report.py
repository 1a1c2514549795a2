"""The accuracy report: the engine against every measurement of a directory."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median

from service.calibration.aims import aims_of, aims_table, sources_table
from service.calibration.fits.constants import FILES
from service.calibration.fits.ledger import STARTUPS
from service.calibration.lines import Line, per_cent
from service.calibration.logs.cookbook import cookbook_rows
from service.calibration.logs.rows import Row, Skipped, rows_of
from service.calibration.oracle import compare_oracle
from service.calibration.oracle_gpus import compare_gpus
from service.calibration.served import Figures, served_figures
from service.calibration.startups import FIRST_RECENT, Comparison, compare_startup
from service.catalog.engine_rules import version_numbers
from service.catalog.snapshot import Snapshot
from service.engine import Gpu, engine_named
from service.performance.fitted import left_out

FIRST_STATED = (0, 2)  # development builds call themselves 0.1
PLANS, PLANS_BY_GPU = "vllm_kv_oracle.jsonl", "vllm_kv_oracle_gpus.jsonl"
MEASURED = (PLANS, PLANS_BY_GPU, *STARTUPS, *FILES)  # what of a directory is read
BEGIN, END = "<!-- accuracy:begin -->", "<!-- accuracy:end -->"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Every line, and every row that was left out with its reason."""

    lines: tuple[Line, ...]
    skipped: tuple[Skipped, ...]

    def text(self) -> str:
        """Return the report for a terminal."""
        rows = [f"{line.subject}: {line.count} rows, {_words(line)}" for line in self.lines]
        reasons: dict[str, int] = {}
        for row in self.skipped:
            reasons[row.reason] = reasons.get(row.reason, 0) + 1
        often_first = sorted(reasons.items(), key=lambda counted: -counted[1])
        why = [f"  {count} x {reason}" for reason, count in often_first]
        aims = [
            f"{aim.name}: {per_cent(aim.reached)}, wanted {per_cent(aim.wanted)}: {'met' if aim.is_met else 'not met'}"
            for aim in aims_of(self.lines, left_out())
            if aim.reached is not None
        ]
        return "\n".join([*rows, *aims, f"left out: {len(self.skipped)} rows", *why]) + "\n"

    def table(self) -> str:
        """Return the report as the tables of the accuracy page: aims, left-out sources, every comparison."""
        unseen = left_out()
        judged = f"{aims_table(aims_of(self.lines, unseen))}\n{sources_table(unseen)}\n"
        head = judged + "| compared with | rows | equal | median error | p90 |\n|---|---|---|---|---|\n"
        return head + "".join(
            f"| {line.subject} | {line.count:,} | {per_cent(line.equal)} | {per_cent(line.median)} "
            f"| {per_cent(line.p90)} |\n"
            for line in self.lines
        )


def _words(line: Line) -> str:
    parts = [
        f"equal {per_cent(line.equal)}" if line.equal is not None else "",
        f"median {per_cent(line.median)}" if line.median is not None else "",
        f"p90 {per_cent(line.p90)}" if line.p90 is not None else "",
        f"on the safe side {per_cent(line.safe)}" if line.safe is not None else "",
        f"worst {line.worst}" if line.worst else "",
    ]
    return ", ".join(part for part in parts if part)


def report(folder: Path, catalog: Snapshot) -> Report:
    """Return how far the engine is from the measurements of a directory.

    One of its files that is missing is said.
    """
    skipped: list[Skipped] = []
    planned = _rows(folder / PLANS, skipped)
    startups = [row for name in STARTUPS for row in _rows(folder / name, skipped)]
    lines = [
        *_oracle_lines(planned, catalog.gpu("h100"), skipped),
        *_gpu_lines(_rows(folder / PLANS_BY_GPU, skipped), planned, catalog, skipped),
        *_startup_lines(startups, catalog, skipped),
        *_serving_lines([row for name in FILES for row in _rows(folder / name, skipped)], catalog, skipped),
    ]
    return Report(lines=tuple(lines), skipped=tuple(skipped))


def _oracle_lines(rows: Sequence[Row], gpu: Gpu, skipped: list[Skipped]) -> list[Line]:
    """Return one line per kind of cache plan, and one for weights."""
    if not rows:
        return []
    compared = compare_oracle(rows, gpu)
    skipped += compared.skipped
    plans = [
        Line(
            subject=f"vLLM's cache plan: {kinds}",
            count=len(equal),
            equal=sum(equal) / len(equal),
            median=None,
            p90=None,
            worst="",
        )
        for kinds, equal in sorted(compared.caches.items())
    ]
    return [*plans, _line("vLLM's parameters per rank", list(compared.weights.items()))]


def _gpu_lines(rows: Sequence[Row], older: Sequence[Row], catalog: Snapshot, skipped: list[Skipped]) -> list[Line]:
    """Return one line per GPU of plans and refusals that are the engine's own, and one of weights."""
    answered, left_out = compare_gpus(rows, older, catalog)
    skipped += left_out
    lines = []
    for gpu in sorted({row.gpu for row in answered}):
        here = [row for row in answered if row.gpu == gpu]
        wrong = next((row.case for row in here if not row.is_equal), "")
        share = sum(row.is_equal for row in here) / len(here)
        subject = f"vLLM's cache plan or refusal on {gpu}"
        lines.append(Line(subject=subject, count=len(here), equal=share, median=None, p90=None, worst=wrong))
    errors = [(row.case, row.weight_error) for row in answered if row.weight_error is not None]
    return [*lines, _line("vLLM's parameters per rank, other GPUs and settings", errors)] if errors else lines


def _serving_lines(rows: Sequence[Row], catalog: Snapshot, skipped: list[Skipped]) -> list[Line]:
    """Return published runs by source, engine, GPU and quantity, then what fits had not seen, then verdicts."""
    if not rows:
        return []
    served: Figures = served_figures([*rows, *cookbook_rows()], catalog, skipped)
    lines = [_line(subject, errors) for subject, errors in sorted(served.errors.items())]
    lines += [
        Line(
            subject=f"left out of its fit: {each.source}, {each.engine} on {each.gpu}, {each.basis}: {each.quantity}",
            count=each.figures,
            equal=None,
            median=each.median_error_fraction,
            p90=each.p90_error_fraction,
            worst=f"within the expected error {per_cent(each.within_expected_fraction)}",
        )
        for each in left_out()
    ]
    for subject, verdicts in sorted(served.verdicts.items()):
        share = sum(verdicts) / len(verdicts)
        lines.append(Line(subject=subject, count=len(verdicts), equal=share, median=None, p90=None, worst=""))
    return lines


def _startup_lines(rows: Sequence[Row], catalog: Snapshot, skipped: list[Skipped]) -> list[Line]:
    """Return one line per quantity and group of engine versions."""
    groups: dict[tuple[str, str], list[tuple[str, float]]] = {}
    for row in rows:
        compared = compare_startup(row, catalog)
        if isinstance(compared, Skipped):
            skipped.append(compared)
            continue
        for figure in compared:
            groups.setdefault((figure.quantity, _age(figure)), []).append((figure.case, figure.error_fraction))
    lines = []
    for (quantity, age), errors in sorted(groups.items()):
        line = _line(f"logged start-ups, {age}: {quantity}", errors)
        if quantity.startswith("kv_cache"):
            line = replace(line, safe=sum(error <= 0 for _, error in errors) / len(errors))
        lines.append(line)
    return lines


def _age(comparison: Comparison) -> str:
    """Return which engine versions a start-up speaks for; those of engines that profile are told apart by age."""
    engine = engine_named(comparison.engine)
    if engine.memory_share != "total":
        return engine.title
    numbers = version_numbers(comparison.engine_version)
    if not numbers or numbers < FIRST_STATED:
        return f"{engine.title}, version not stated"
    recent = ".".join(map(str, FIRST_RECENT))
    return f"{engine.title} {recent} and newer" if numbers >= FIRST_RECENT else f"{engine.title} before {recent}"


def _rows(path: Path, skipped: list[Skipped]) -> Sequence[Row]:
    if not path.is_file():
        skipped.append(Skipped(case=path.name, reason="the file is not there"))
        return []
    return rows_of(path)


def _line(subject: str, errors: Sequence[tuple[str, float]]) -> Line:
    sizes = sorted(abs(error) for _, error in errors)
    worst, error = max(errors, key=lambda case: abs(case[1]))
    return Line(
        subject=subject,
        count=len(sizes),
        equal=sum(size == 0 for size in sizes) / len(sizes),
        median=median(sizes),
        mean=mean(sizes),
        p90=sizes[min(int(0.9 * len(sizes)), len(sizes) - 1)],
        worst=f"{worst} {100 * error:+.1f} %",
    )


def write_page(page: Path, measured: Report) -> None:
    """Replace the table of the accuracy page between its two markers.

    Raises:
        ValueError: the page has no markers.
    """
    text = page.read_text(encoding="utf-8")
    before, marker, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not marker or not end:
        raise ValueError(f"{page} has no {BEGIN} ... {END}")
    page.write_text(f"{before}{BEGIN}\n{measured.table()}{END}{after}", encoding="utf-8")
