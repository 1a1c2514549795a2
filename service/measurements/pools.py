"""What vLLM says of a pool that is not what its memory holds, or that its versions count otherwise."""

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from service.catalog.engine_rules import rules_for
from service.catalog.measurement_rows import Setting
from service.engine.errors import InvalidQuestionError
from service.measurements.observed import Doubt, Figure, Observed
from service.measurements.patterns import MOST_CHARACTERS

MOST_APART: Final = 0.05  # tokens by blocks from tokens by requests, where layers are alike [fraction]
PRINTED_TO: Final = 0.01  # of one request
OVERRIDING: Final = re.compile(r"Overriding num_gpu_blocks=(\d{1,12}) with num_gpu_blocks_override=(\d{1,12})")
OF_BLOCKS: Final = (
    "kv_cache.num_gpu_blocks",
    "kv_cache.tokens",
    "kv_cache.max_concurrency",
    "kv_cache.estimated_max_model_len",
)
REFUSED: Final = (
    (
        re.compile(r"max seq len \((\d{1,9})\),? \(?(\d{1,9}(?:\.\d{1,3})?) GiB KV cache is needed"),
        "a request of {0} tokens needs {1} GiB of cache",
    ),
    (
        re.compile(r"max seq len \((\d{1,9})\) is larger than the maximum number of tokens that can be stored"),
        "a request of {0} tokens is longer than the cache",
    ),
    (
        re.compile(
            r"ree memory on device [\w: ]{0,16}\(([\d.]{1,9})/[\d.]{1,9} GiB\) on startup is less than desired GPU "
            r"memory utilization \([\d.]{1,9}, ([\d.]{1,9}) GiB\)"
        ),
        "{0} GiB of the GPU are free, and {1} are asked for",
    ),
    (
        re.compile(
            r"No available memory for the cache blocks|Loaded weights leave no GPU memory for the KV cache|"
            r"Not enough memory\. Please try to increase --mem-fraction-static"
        ),
        "no memory is left for a cache",
    ),
)
OF_ROOM: Final = ("weight_bytes", "weight_and_non_torch_bytes", "kv_cache_bytes", *OF_BLOCKS)
MOVED: Final = "moved_gib"  # weights that lie in the host's memory
OTHERWISE: Final = ("offloaded_gib", "exchange", "plans_ahead", "plans_in_turn")  # of a server alone
OWN_EXCHANGES: Final = ("allgather_reducescatter", "naive", "none", "auto")


def doubt_tokens(observed: Observed) -> None:
    """Doubt tokens that are not the longest requests held times their length, as versions since 0.20.1 print them.

    Source:
        vLLM 0.20.1 `v1/core/kv_cache_utils.py` (`_report_kv_cache_config`); vllm-project/vllm issue 40691.
    """
    tokens, held = (observed.figures.get(f"kv_cache.{name}") for name in ("tokens", "max_concurrency"))
    length = observed.settings.get("max_model_len")
    if tokens is None or held is None or not isinstance(length, int):
        return
    apart = abs(tokens.value - held.value * length)
    if apart > MOST_APART * tokens.value + PRINTED_TO * length:
        sentence = (
            f"line {tokens.line}: {tokens.value:.0f} tokens are not {held.value:g} x {length}, so a version before "
            "0.20.1 counted them by blocks, and they are not compared: state engine_version"
        )
        observed.doubts.append(Doubt(sentence=sentence, fields=("engine_version",), figures=(tokens.name,)))


def doubt_overridden(observed: Observed, lines: Sequence[tuple[int, str]]) -> None:
    """Doubt what is counted of blocks where the caller said how many there are.

    A pool of no block is overridden too, while graphs are profiled: nothing is said of the server's pool then.

    Source:
        vLLM 0.19 `v1/core/kv_cache_utils.py` (`may_override_num_blocks`), `v1/worker/gpu_model_runner.py`
        (`_init_minimal_kv_cache_for_profiling`).
    """
    said = [(match, place) for place, line in lines if (match := OVERRIDING.search(line[:MOST_CHARACTERS]))]
    stated = [(int(match[1]), int(match[2]), place) for match, place in said if int(match[1])]
    if stated:
        held, asked, place = stated[-1]
        sentence = (
            f"line {place}: {asked} blocks were asked for, and {held} fit: what is counted of blocks is not compared"
        )
        observed.doubts.append(Doubt(sentence=sentence, fields=(), figures=OF_BLOCKS))


def doubt_refused(observed: Observed, lines: Sequence[tuple[int, str]]) -> None:
    """Say of a start that the engine refused it, whatever it printed before: nothing was served so.

    Sources:
        vLLM 0.6 `worker/worker.py` (`raise_if_cache_size_invalid`), 0.8 to 0.33 `v1/core/kv_cache_utils.py`
        (`_check_enough_kv_cache_memory`); SGLang 0.4.3 `model_executor/model_runner.py`, 0.5.23
        `model_executor/pool_configurator.py`.
    """
    for place, line in lines:
        for pattern, reason in REFUSED:
            if match := pattern.search(line[:MOST_CHARACTERS]):
                observed.refused_line = place
                told = f"line {place} says that the engine refused to start: {reason.format(*match.groups())}"
    if observed.refused_line:
        observed.doubts.append(Doubt(sentence=told, fields=()))


def doubt_offloaded(observed: Observed, gib: Setting | None, line: int, moved: Figure | None = None) -> None:
    """Doubt what a GPU holds where weights lie in its host's memory, which no answer puts there.

    Args:
        observed: what a start says.
        gib: of weights that may lie there; none where nothing is said of it. [GiB]
        line: that says so.
        moved: of weights that do; none where nothing is said of it. [GiB]

    Source:
        vLLM `config/offload.py` (`cpu_offload_gb`, for each GPU), `model_executor/offloader/uva.py`; SGLang
        `server_args.py` (`cpu_offload_gb`).
    """
    if moved is not None:
        told = f"line {moved.line} puts {moved.value:g} GiB"
    elif isinstance(gib, int | float) and gib > 0:
        told = f"line {line} puts up to {gib:g} GiB"
    else:
        return
    sentence = (
        f"{told} of weights into the host's memory: no answer does, so neither weights nor the cache are compared"
    )
    observed.doubts.append(Doubt(sentence=sentence, fields=(), figures=OF_ROOM))


def doubt_exchange(observed: Observed, backend: Setting | None, line: int) -> None:
    """Say of a start whose experts exchange tokens by another backend than the engine's own that it is not compared.

    Args:
        observed: what a start says.
        backend: as its flag names it; none where nothing is said of it.
        line: that says so.

    Source:
        vLLM `config/parallel.py` (`all2all_backend`), SGLang `server_args.py` (`moe_a2a_backend`).
    """
    if isinstance(backend, str) and backend not in OWN_EXCHANGES:
        sentence = f"line {line}: experts exchange their tokens by {backend:.40}, and what is compared is of the "
        sentence += "engine's own exchange: its times, and the memory that the other one sets aside, are not predicted"
        observed.doubts.append(Doubt(sentence=sentence, fields=()))


def doubt_turns(observed: Observed, ahead: Setting | None, line: int) -> None:
    """Say of a server that plans steps otherwise than its version does unasked that no answer does.

    Args:
        observed: what is said of it.
        ahead: whether vLLM plans a step while the one before runs; none where nothing is said of it.
        line: that says so.

    Source:
        vLLM 0.14 `config/vllm.py` (`async_scheduling`, by default since).
    """
    version = observed.settings.get("engine_version")
    with suppress(InvalidQuestionError):
        is_usual = rules_for("vllm", None if version is None else str(version)).steps_planned_ahead > 0
        if isinstance(ahead, bool) and ahead is not is_usual:
            _tell_turns(observed, line, "ahead" if ahead else "in turn")


def _tell_turns(observed: Observed, line: int, how: str) -> None:
    sentence = (
        f"line {line}: steps are planned {how}, and those of every answer as its engine does unasked: its times, "
    )
    sentence += "and what it answers at most, are not predicted"
    observed.doubts.append(Doubt(sentence=sentence, fields=()))


def doubt_otherwise(observed: Observed) -> None:
    """Doubt what answers do otherwise than a server, and forget its settings that say so.

    Source:
        SGLang `server_args.py` (`disable_overlap_schedule`), TensorRT-LLM `llmapi/llm_args.py`
        (`disable_overlap_scheduler`): off unless stated.
    """
    lines, moved = observed.setting_lines, observed.figures.pop(MOVED, None)
    said = {name: (observed.settings.pop(name, None), lines.pop(name, 1)) for name in OTHERWISE}
    doubt_offloaded(observed, *said["offloaded_gib"], moved)
    doubt_exchange(observed, *said["exchange"])
    doubt_turns(observed, *said["plans_ahead"])
    in_turn, line = said["plans_in_turn"]
    if in_turn is True:
        _tell_turns(observed, line, "in turn")
