"""Reads a pasted text: whose it is, and what it says; a text that is no measurement is refused by its line."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final

from service.measurements import evalscope, guidellm, guidellm_csv, guidellm_first, llmperf, offline
from service.measurements.benchmarks import benchmark, is_known
from service.measurements.keeping import Lines, leave_out, leave_out_endless
from service.measurements.notebooks import printed_in
from service.measurements.observed import MOST_SHOWN, Observed, UnreadableTextError
from service.measurements.pairs import value_table
from service.measurements.patterns import COLOUR, MOST_CHARACTERS
from service.measurements.printed import printed
from service.measurements.prose import told
from service.measurements.served_by import keep_server
from service.measurements.starts import last_complete
from service.measurements.startup_logs import READERS, startup_log
from service.measurements.statistics import statistics_table
from service.measurements.trtllm_bench import overview
from service.measurements.untagged import forget_untagged
from service.measurements.wrapped import unwrapped

MOST_TEXT: Final = 400_000  # characters; an engine's start-up has some ten thousand, at the head of its log
MOST_LINES: Final = 20_000  # of which it has some hundreds
MOST: Final = 10**18
MARK: Final = "\ufeff"  # what some editors write before a text
MOST_UNDEFINED: Final = 8  # figures that are told to be none
SURELY: Final = 2  # figures of one engine's own lines that are no accident
FAILED: Final = re.compile(
    r"No available memory for the cache blocks|CUDA out of memory|OutOfMemoryError|Not enough memory|"
    r"is less than desired GPU memory utilization|creation failed due to insufficient GPU memory"
)
# Whose lines they are, of programs that nothing here sizes.
OF_OTHERS: Final = (
    ("llama.cpp, which Ollama and LM Studio run", re.compile(
        r"\b(?:llama_(?:model_loader|new_context_with_model|init_from|context|kv_cache\w*)|llm_load_\w+|load_tensors|"
        r"ggml_(?:cuda|vulkan|metal)\w*|print_info):|source=(?:server|sched)\.go"
    )),
    ("text-generation-inference", re.compile(r"\btext_generation_(?:launcher|router)\b")),
    ("LMDeploy", re.compile(r"\[TM\]\[(?:INFO|WARNING|ERROR)\]|\blmdeploy\b.{0,80} - (?:INFO|WARNING)")),
    ("MLC LLM", re.compile(r"\bmlc_llm\b|Estimated KVCacheConfig")),
    ("GuideLLM's report as YAML; its benchmarks.json says the same", re.compile(r"^ *guidellm_version: ")),
    ("SGLang's router, which holds no model", re.compile(r"\bsglang_router(?:_rs)?::|\bsgl_model_gateway::")),
    ("nvidia-smi: what is used of a GPU, not by what", re.compile(r"\bNVIDIA-SMI \d{3}\.")),
    ("rocm-smi: what is used of a GPU, not by what", re.compile(r"ROCm System Management Interface")),
)  # fmt: skip
ACCEPTED: Final = (
    "a start-up log of vLLM, SGLang or TensorRT-LLM, or a result as it is printed or as JSON: of vllm bench serve, "
    "throughput or latency, SGLang bench_serving, trtllm-bench, GuideLLM, genai-perf, AIPerf, inference-perf, "
    "InferenceX, llmperf or evalscope perf; or metrics of these names as CSV"
)
# What is printed at the end of a benchmark, by whom; a text is of the first that knows it.
PRINTED: Final[Sequence[Callable[[Lines], Observed | None]]] = (
    printed, statistics_table, guidellm.console, guidellm_first.console, overview, evalscope.table, llmperf.printed,
    guidellm_csv.report, offline.printed, value_table,
)  # fmt: skip


def read_measurement(text: str) -> Observed:
    """Return what a text says that was measured.

    Raises:
        UnreadableTextError: it says nothing that is known here, or contradicts itself.
    """
    observed = _read(text)
    forget_untagged(observed)
    leave_out_endless(observed)
    return observed


def _read(text: str) -> Observed:
    text = text.removeprefix(MARK)
    text = printed_in(text) or text
    inside = unwrapped(text)
    if text.lstrip()[:1] in ("{", "["):
        document = None if inside != text and text.lstrip()[0] == "[" else _document(text)
        if document is not None and (inside == text or is_known(document)):
            observed = benchmark(document)
            for name, said in islice(_undefined(text), MOST_UNDEFINED):
                leave_out(observed, name, said, 1)
            return observed
    if len(text) > MOST_TEXT:
        place = text.count("\n", 0, MOST_TEXT) + 1
        raise UnreadableTextError(place, "the text goes on after it", f"at most {MOST_TEXT} characters")
    plain = COLOUR.sub("", inside)
    lines = [(place, line) for place, line in enumerate(plain.splitlines(), start=1) if line.strip()]
    if len(lines) > MOST_LINES:
        raise UnreadableTextError(MOST_LINES, "the text goes on after it", f"at most {MOST_LINES} lines")
    results = (result for reader in PRINTED if (result := reader(lines)) is not None and result.figures)
    result = next(results, None)
    if result is None:
        return _log(lines)
    keep_server(result, lines)
    return result


def _document(text: str) -> dict[str, object] | None:
    """Return the JSON object of a text; None where it is lines, of which the first happens to begin like one.

    Raises:
        UnreadableTextError: it is JSON without an object, or broken off.
    """
    try:
        document = json.loads(text, parse_constant=_finite, parse_float=_finite, parse_int=_whole)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and '"mean_ttft_ms"' in text:
            raise UnreadableTextError(error.lineno, "a second result begins here", "the result of one run") from error
        if error.msg == "Extra data":
            return None  # a log whose every line is an object
        if text.lstrip().startswith("{") and '"' in text[:200]:
            raise UnreadableTextError(error.lineno, "the JSON breaks off here", ACCEPTED) from error
        return None
    except ValueError as error:
        raise UnreadableTextError(1, "the JSON holds a number beyond all measure", ACCEPTED) from error
    except RecursionError as error:
        raise UnreadableTextError(1, "the JSON is nested too deep", ACCEPTED) from error
    if isinstance(document, list) and document and all(isinstance(each, dict) and is_known(each) for each in document):
        if len(document) > 1:
            raise UnreadableTextError(1, f"the JSON is a list of {len(document)} results", "the result of one run")
        document = document[0]
    if not isinstance(document, dict):
        raise UnreadableTextError(1, "JSON without an object", ACCEPTED)
    return document


def _undefined(text: str) -> Iterator[tuple[str, str]]:
    """Yield the figures of a JSON text that are no numbers, each by its path; a rate without end is none held back."""
    if not any(word in text for word in ("NaN", "Infinity")):
        return
    left = [("", json.loads(text, parse_constant=_Undefined))]
    while left:
        path, value = left.pop(0)
        if isinstance(value, _Undefined) and not (value == "Infinity" and path.endswith("rate")):
            yield path, value
        inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        left[:0] = [(f"{path}.{name}".lstrip("."), each) for name, each in inside]


class _Undefined(str):
    """What JSON of Python writes of what is no number."""

    __slots__ = ()


def _finite(text: str) -> float:
    """Return a number that a measurement may be; infinite and undefined ones are nothing measured."""
    if text in ("Infinity", "-Infinity", "NaN"):
        return 0.0
    if abs(value := float(text)) > MOST:
        raise ValueError(text[:MOST_SHOWN])
    return value


def _whole(text: str) -> int:
    if len(text) > len(str(MOST)):
        raise ValueError(text[:MOST_SHOWN])
    return int(text)


def _log(lines: Lines) -> Observed:
    """Return what a log says of its last complete start, or else what people write of one.

    Raises:
        UnreadableTextError: it says nothing, or it is of two servers.
    """
    best = last_complete(_start, READERS, lines) if lines else told(lines)
    if not best.figures:
        best = told(lines)
    if not best.figures:
        raise _measures_nothing(lines, [startup_log(reader, lines) for reader in READERS])
    best.settings.setdefault("engine", "vllm")
    return best


def _start(lines: Lines) -> Observed:
    """Return a start as the engine that understands most of it reads it.

    Raises:
        UnreadableTextError: two engines do: it is of two servers.
    """
    read = [(reader.engine, startup_log(reader, lines)) for reader in READERS]
    read.sort(key=lambda pair: -len(pair[1].figures))
    engine, best = read[0]
    if best.figures and len(read[1][1].figures) >= SURELY:
        starts = sorted((min(each.line for each in log.figures.values()), log.what) for _, log in read[:2])
        sentence = f"a {starts[1][1]} begins here, and a {starts[0][1]} on line {starts[0][0]}"
        raise UnreadableTextError(starts[1][0], sentence, "the log of one start-up")
    best.settings.setdefault("engine", engine)
    return best


def _measures_nothing(lines: Lines, read: Sequence[Observed]) -> UnreadableTextError:
    """Return why lines are no measurement: a start-up that ended too early, or something else altogether."""
    for place, line in lines:
        if FAILED.search(line[:MOST_CHARACTERS]):
            sentence = f"the start-up fails here: {line.strip()[-MOST_SHOWN:]!r}, and says nothing of what it took"
            return UnreadableTextError(place, sentence, f"its lines of weights or cache too; {ACCEPTED}")
    for what, pattern in OF_OTHERS:
        place = next((place for place, line in lines if pattern.search(line[:MOST_CHARACTERS])), 0)
        if place:
            return UnreadableTextError(place, f"a text of {what}", ACCEPTED)
    started = max((max(each.setting_lines.values(), default=0) for each in read), default=0)
    if started:
        sentence = f"the start-up is told from line {started} on, and ends before it says what it took"
        return UnreadableTextError(lines[-1][0], sentence, f"its lines of weights or cache too; {ACCEPTED}")
    if not lines:
        return UnreadableTextError(1, "the text is empty", ACCEPTED)
    place, line = lines[0]
    return UnreadableTextError(place, f"{line.strip()[:MOST_SHOWN]!r} and what follows measure nothing", ACCEPTED)
