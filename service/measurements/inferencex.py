"""Results of InferenceX (InferenceMAX before): what it makes of one run on one server, as JSON.

Times are in seconds, throughputs by GPU; `isl` and `osl` are the longest lengths that are drawn.

Sources:
    https://github.com/SemiAnalysisAI/InferenceX, `utils/process_result.py`; its scripts of models ask for ten prompts
    for each that runs at once; `.github/workflows/benchmark-tmpl.yml` (RANDOM_RANGE_RATIO: 0.8).
"""

import re
from collections.abc import Mapping
from typing import Any, Final, get_args

from service.engine.inputs import EngineName
from service.measurements.keeping import STATISTICS, keep_load, number_in, put, state
from service.measurements.observed import Doubt, Observed, UnreadableTextError

THEIR_NAMES: Final[Mapping[str, str]] = {"trt": "tensorrt-llm", "trtllm": "tensorrt-llm"}  # of engines
FORMATS: Final = frozenset({"bf16", "fp8", "int8", "int4"})  # of fp4 there are two; the checkpoint's name tells which
TIMES: Final[Mapping[str, str]] = {"ttft": "ttft_s", "tpot": "tpot_s", "itl": "itl_s", "e2el": "end_to_end_s"}
LAYOUT: Final[Mapping[str, str]] = {
    "tp": "tensor_parallel_size", "pp": "pipeline_parallel_size", "dcp_size": "decode_context_parallel_size",
}  # fmt: skip
OF_IMAGE: Final = re.compile(r":v?(\d{1,4}\.\d{1,4}(?:\.\d{1,4})?(?:rc\d{1,3}|\.post\d{1,3})?)")
HARDWARE: Final = re.compile(r"(?:cluster:)?([^-_]{1,40})")  # h200-cw is an H200 of one of their providers
PROMPTS_PER_CONCURRENT: Final = 10
ACCEPTED: Final = "a run with isl and osl on one server of vllm, sglang or trt, without drafts"
MEAN_OF_LONGEST: Final = 0.9  # of lengths drawn evenly between 0.8 and 1 of the longest


def result(document: Mapping[str, Any]) -> Observed:
    """Return what a result says.

    Raises:
        UnreadableTextError: of several servers, attention that is not shared, drafted tokens, a foreign engine, or
            lengths that are not told, as those of agents are not.
    """
    observed = Observed(what="InferenceX result", kind="benchmark")
    framework = str(document.get("framework"))
    engine = THEIR_NAMES.get(framework, framework)
    for is_other, sentence in (
        (_is_on(document, "disagg") or _is_on(document, "is_multinode"), "prefill and decode had servers of their own"),
        (_is_on(document, "dp_attention"), "attention was not shared by the ranks (dp_attention)"),
        (number_in(document.get("pcp_size")) > 1, "ranks shared prompts (pcp_size)"),
        (_is_on(document, "spec_decoding") or _is_on(document, "mtp"), "tokens were drafted, and not how many is told"),
        (not (number_in(document.get("isl")) and number_in(document.get("osl"))), "isl and osl are not told"),
        (engine not in get_args(EngineName), f"the framework {framework[:40]!r} is not sized here"),
    ):
        if is_other:
            raise UnreadableTextError(1, sentence, ACCEPTED)
    state(observed, "engine", engine)
    version = OF_IMAGE.search(str(document.get("image"))[:300])
    state(observed, "engine_version", version[1] if version else None)
    state(observed, "model", document.get("model"))
    hardware = HARDWARE.match(str(document.get("hw") or ""))
    state(observed, "gpu", hardware[1] if hardware else None)
    precision = str(document.get("precision"))
    if precision in FORMATS:
        state(observed, "weight_format", precision)
    for name, field in LAYOUT.items():
        state(observed, field, document.get(name))
    if number_in(document.get("ep")) > 1:
        observed.state("expert_parallel", True, 1)
    concurrency = number_in(document.get("conc"))
    keep_load(observed, concurrency, None)
    state(observed, "num_prompts", round(PROMPTS_PER_CONCURRENT * concurrency))
    observed.lengths_vary = True
    for name, field in (("isl", "input_tokens"), ("osl", "output_tokens")):
        mean = round(MEAN_OF_LONGEST * number_in(document.get(name)))
        sentence = (
            f"{field} are taken to be {mean} on average: drawn evenly between 0.8 and 1 of {name}, as InferenceX "
        )
        sentence += f"draws them; state {field} if they were not"
        observed.doubts.append(Doubt(sentence=sentence, fields=(field,), assumed={field: mean}))
    for name, field in TIMES.items():
        for statistic in ("mean", "median", "p95", "p99"):
            put(observed, f"{field}.{STATISTICS[statistic]}", document.get(f"{statistic}_{name}"))
    num_gpus = max(number_in(document.get("tp")), 1) * max(number_in(document.get("pp")), 1)
    put(observed, "output_tokens_per_s", document.get("output_tput_per_gpu"), num_gpus)
    return observed


def _is_on(document: Mapping[str, Any], name: str) -> bool:
    """Return whether a switch is on: they are written as they were in a shell."""
    return str(document.get(name) or "").lower() not in ("", "false", "none", "off", "0")
