"""What people write of a start-up beside or instead of its log: a sentence, a line of a table.

Read only where no engine's own lines are found, and only from lines that speak of a cache, a pool or a share of
memory. A figure that such a text states twice, and otherwise, is nobody's.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from service.engine.arithmetic import GIB
from service.engine.patience import go_on
from service.measurements.observed import Observed
from service.measurements.patterns import MOST_CHARACTERS, UNITS, number, setting

COUNT: Final = r"(?<![-\d,])~?(\d[\d,]{0,24}+(?:\.\d{1,6})?) ?([kM]?)"
MEMORY: Final = r"(?<![-\d.])~?(\d{1,7}+(?:\.\d{1,6})?) ?(GiB|GB|MiB|MB)"
THOUSANDS: Final[Mapping[str, int]] = {"": 1, "k": 1_000, "M": 1_000_000}
SPEAKS: Final = re.compile(
    r"\bKV|kv_?cache|\bcache\b|\bpool\b|\butil(?:ization)?\b|\bconcurren|^v\d+\.\d+\.\d+: ", re.IGNORECASE
)
TOKENS: Final = tuple(
    re.compile(expression)
    for expression in (
        COUNT + r" tokens\b",
        COUNT + r"-token (?:KV |cache )*(?:pool|ceiling|cache)\b",
        r"\bKV pool " + COUNT + r"\b(?! ?[GM]i?B)",
        r"\bkv ?cache num(?:ber)? per (?:gpu|card) ?: ?" + COUNT,
    )
)
OTHERWISE: Final = re.compile(r"(?:\bfor|\bblock size(?: to)?|\bprompts? of|\bbatched|[\w-]+=) ?$", re.IGNORECASE)
LONGEST_BEFORE: Final = 60  # characters before a number that say whose it is
CACHE: Final = (
    re.compile(MEMORY + r" (?:of )?KV\b"),
    re.compile(MEMORY + r" / [\d,]+ tokens"),
    re.compile(r"\bKV cache memory\b[^.;\d]{0,40}" + MEMORY),
)
WEIGHTS: Final = (
    re.compile(
        r"\b(?:AWQ|GPTQ|W4A16|INT[48]|FP8|NVFP4|MXFP4|BF16)[\w-]{0,24} " + MEMORY + r" (?:per|a|each) (?:card|GPU)"
    ),
    re.compile(r"\bweights?[: ]+" + MEMORY),
)
CONCURRENCY: Final = (
    re.compile(r"[Mm]ax(?:imum)? concurren(?:t|cy)[ :@\w]{0,12}? (\d{1,6}(?:\.\d{1,4})?)x"),
    re.compile(r"(\d{1,6}(?:\.\d{1,4})?)x concurrency"),
)
SETTINGS: Final = (
    ("gpu_memory_utilization", re.compile(r"\butil(?:ization)?[ =:]{1,3}(0?\.\d{1,3}|1\.0)\b")),
    ("tensor_parallel_size", re.compile(r"\bTP[ =]?(\d{1,2})\b")),
    ("max_model_len", re.compile(r"\bmax[-_]model[-_]len[ =:]{1,2}(\d[\d,]{0,12})")),
    ("engine_version", re.compile(r"\bvLLM v?(\d+\.\d+\.\d+)")),
)
# Heads of columns, by what they begin with.
COLUMNS: Final[Mapping[str, str]] = {
    "weights": "weight_bytes", "activation": "activation_bytes", "non-torch": "non_torch_bytes",
    "cuda graph": "cuda_graph_bytes", "kv cache": "kv_cache_bytes",
}  # fmt: skip
HEAD: Final = re.compile(
    r"((?:weights?|activation|non-torch|cuda graphs?|kv cache)[^|]{0,24}\|[^\n)]{0,200})", re.IGNORECASE
)
CELL: Final = re.compile(r"-?\d{1,6}(?:\.\d{1,6})?")
FEWEST_COLUMNS: Final = 3


def told(lines: Sequence[tuple[int, str]]) -> Observed:
    """Return what sentences or a table say of a start-up; without figures where they say nothing."""
    observed = Observed(what="start-up as somebody tells it", kind="start-up log")
    seen: dict[str, set[tuple[float, int]]] = {}
    for name, value, place in (*_sentences(lines), *_table(lines)):
        seen.setdefault(name, set()).add((value, place))
    for name, values in seen.items():
        if len({value for value, _ in values}) == 1:
            value, place = min(values, key=lambda pair: pair[1])
            observed.see(name, value, place)
    if observed.figures:
        _settings(observed, lines)
    return observed


def _sentences(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[str, float, int]]:
    for place, whole in lines:
        go_on()
        line = whole[:MOST_CHARACTERS]
        if not SPEAKS.search(line):
            continue
        for match in (match for each in TOKENS for match in each.finditer(line)):
            if (
                not OTHERWISE.search(line[max(match.start() - LONGEST_BEFORE, 0) : match.start()])
                and number(match[1]) > 0
            ):
                yield "kv_cache.tokens", number(match[1]) * THOUSANDS[match[2]], place
        for name, patterns in (("kv_cache_bytes", CACHE), ("weight_bytes", WEIGHTS)):
            for match in (match for each in patterns for match in each.finditer(line)):
                yield name, number(match[1]) * UNITS[match[2].upper()], place
        for match in (match for each in CONCURRENCY for match in each.finditer(line)):
            yield "kv_cache.max_concurrency", number(match[1]), place


def _table(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[str, float, int]]:
    """Yield the cells of the first row that has a number under each head: in GiB, as the heads say."""
    heads = next(((place, match[1]) for place, line in lines if (match := HEAD.search(line[:MOST_CHARACTERS]))), None)
    if heads is None or "GiB" not in "".join(line for _, line in lines):
        return
    names = [_column(cell) for cell in re.split(r"[|,]", heads[1])]
    wanted = [name for name in names if name is not None]
    if len(wanted) < FEWEST_COLUMNS:
        return
    for place, line in lines:
        cells = [cell.strip() for cell in line[:MOST_CHARACTERS].split("|")]
        numbers = [float(cell) for cell in cells if CELL.fullmatch(cell)]
        if len(numbers) == len(wanted):
            yield from ((name, value * GIB, place) for name, value in zip(wanted, numbers, strict=True) if value > 0)
            return


def _column(cell: str) -> str | None:
    head = cell.strip().lower()
    return next((name for begins, name in COLUMNS.items() if head.startswith(begins)), None)


def _settings(observed: Observed, lines: Sequence[tuple[int, str]]) -> None:
    """Keep settings that are stated once; of several the text does not say which was this start-up's."""
    for name, pattern in SETTINGS:
        text = [(place, match[1]) for place, line in lines for match in pattern.finditer(line[:MOST_CHARACTERS])]
        if len({value for _, value in text}) == 1:
            place, value = text[0]
            observed.state(name, value if name == "engine_version" else setting(value.replace(",", "")), place)
