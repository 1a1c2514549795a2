"""What a published run's own words and figures say against it: trials, slowed GPUs, drafts, faltering hosts."""

from typing import Final

from service.calibration.logs.datasets import data_set
from service.calibration.logs.rows import Row, UnstatedError, remarks
from service.calibration.logs.sent import is_mlperf
from service.engine import MILLISECONDS_PER_S

ASSUMED: Final = "C"  # the quality of rows whose settings are assumed in part
# A trial by its own words; a GPU that its owner slowed is not the one of the data sheet.
UNLIKE: Final = ("experimental", "power limit")
# SGLang 0.5.10 `srt/server_args.py` (`_handle_a2a_moe`): "Cuda graph is disabled because deepep_mode=`normal`".
WITHOUT_GRAPHS: Final = "deepep-mode=normal"
# GuideLLM divides the whole latency by the tokens, the wait for the first one included (`time_per_output_token_ms`
# in src/guidellm/schemas/request_stats.py); its time between tokens is what others call time per output token.
WHOLE_LATENCY_TOLERANCE: Final = 0.03
HIGH_DECILE: Final = 0.9
STEADY_PACE: Final = 1.3  # the most that times between tokens spread in a batch that only decodes
# Answers alike have one pace, whether requests or tokens are averaged.
LEAST_EVEN_PACE: Final = 0.5
# Of a closed loop's users, by Little's law; answers that spread are in flight less than half of a burst's time.
FEWEST_IN_FLIGHT: Final = 0.4
MOST_IN_FLIGHT: Final = 1.2


def is_doubtful(row: Row) -> bool:
    """Return whether a row's own words or figures say that it is no measurement of an engine on its GPU alone."""
    return (
        str(row.get("quality_tier")) == ASSUMED
        or any(word in remarks(row) for word in UNLIKE)
        or ("energy" in row and _host_falters(row))
    )


def _host_falters(row: Row) -> bool:
    """Return whether the pace of a full batch varies where nothing that GPUs do lets it vary: they waited for a host.

        iterations with prompts / iterations = requests in the batch / tokens of an answer

    Where those are fewer than one in ten, the ninth decile of times between tokens is that of plain decoding. ML.ENERGY
    runs on H100 are then within 26 % of their median; small models on B200 are up to twice as slow at a third of the
    GPU's power.
    """
    between, users = row["reported"].get("itl_ms") or {}, float(row.get("concurrency") or 0)
    if not between.get("p50") or users / float(row["osl"]) >= 1 - HIGH_DECILE:
        return False
    return bool(between["p90"] / between["p50"] > STEADY_PACE)


def refuse_unlike(row: Row) -> None:
    """Refuse what is served or sent in a way that is not simulated beside measurements.

    Raises:
        UnstatedError: it is.
    """
    if not row.get("tp"):
        raise UnstatedError("how many GPUs one replica takes is not stated")
    if row.get("speculative_decoding") or "serve command uses MTP" in remarks(row):
        raise UnstatedError("how many drafted tokens were accepted is not stated")
    if is_mlperf(row) and "v6" in str(row["source"]) and _drafts(row):
        raise UnstatedError("MLPerf v6.0 may draft in this scenario, and how many tokens were accepted is not stated")
    if WITHOUT_GRAPHS in remarks(row):
        raise UnstatedError("that mode of DeepEP runs without graphs, and nobody measured such steps")
    if "VisionArena" in str(row.get("dataset")):
        raise UnstatedError("how many tokens its images take is not stated")


def _drafts(row: Row) -> bool:
    """Return whether a scenario allows drafts: DeepSeek-R1 Interactive.

    Source: mlcommons.org/2026/03/mlperf-inference-gpt-oss.
    """
    return "deepseek-r1" in str(row.get("dataset")) and str(row["id"]).endswith("interactive")


def refuse_contradiction(row: Row) -> None:
    """Refuse users who, by the run's own figures, were not there, or were more than there were.

        in flight = requests per second x end-to-end latency

    Of users who all send at once and then leave, half are in flight on average; of users who send again, nearly all.

    Source:
        J. D. C. Little, A Proof for the Queuing Formula: L = lambda W (1961).

    Raises:
        UnstatedError: they contradict each other.
    """
    _refuse_uneven(row)
    reported, users = row["reported"], row.get("concurrency")
    e2e, ttft, tpot = ((reported.get(f"{name}_ms") or {}).get("mean") for name in ("e2e", "ttft", "tpot"))
    if not e2e and ttft and tpot and data_set(row) is None:
        e2e = ttft + tpot * (float(row["osl"]) - 1)
    rate = reported.get("requests_per_s")
    if not users or not e2e or not rate:
        return
    share = float(rate) * e2e / MILLISECONDS_PER_S / float(users)
    if not FEWEST_IN_FLIGHT < share < MOST_IN_FLIGHT:
        raise UnstatedError(
            f"by its own figures {100 * share:.0f} % of its users were in flight: it was not sent as stated"
        )


def _refuse_uneven(row: Row) -> None:
    """Refuse answers that are stated as alike, and whose mean pace by token is far from that by request.

    Raises:
        UnstatedError: their lengths spread, and nobody says how.
    """
    by_request, by_token = ((paced(row).get(name) or {}).get("mean") for name in ("tpot_ms", "itl_ms"))
    is_alike = data_set(row) is None
    if is_alike and by_request and by_token and by_token < LEAST_EVEN_PACE * by_request:
        raise UnstatedError("by its own figures its answers differ in length, and how is not stated")


def paced(row: Row) -> Row:
    """Return the reported figures with the time per output token as others define it.

    Where tokens x time per output token is the whole latency, the wait for the first token is in it, and the time
    between tokens stands for it.
    """
    reported = row["reported"]
    tpot, e2e, ttft, between = (reported.get(f"{name}_ms") or {} for name in ("tpot", "e2e", "ttft", "itl"))
    if not (tpot.get("mean") and e2e.get("mean") and ttft.get("mean") and between.get("mean")):
        return dict(reported)
    whole = tpot["mean"] * float(row["osl"]) / e2e["mean"]
    waits = ttft["mean"] / e2e["mean"]
    if waits < 2 * WHOLE_LATENCY_TOLERANCE or abs(whole - 1) > WHOLE_LATENCY_TOLERANCE + waits / 4:
        return dict(reported)
    return {**reported, "tpot_ms": {"mean": between["mean"]}}
