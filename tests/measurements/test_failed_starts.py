"""A pool of less than nothing: what a start that failed says is read, told, and stored with no prediction."""

from service.catalog.snapshot import Snapshot
from service.measurements.checking import check, lines_of
from service.measurements.reading import read_measurement
from service.measurements.storing import entry_of
from service.questions.asked import Desk

GIB = 1 << 30
# vllm-project/vllm issue 23278.
GPT_OSS = """(EngineCore_0 pid=5839) INFO 08-20 18:04:10 [gpu_model_runner.py:2007] Model loading took 65.9651 GiB and 12.8 seconds
(EngineCore_0 pid=5839) INFO 08-20 18:04:22 [gpu_worker.py:276] Available KV cache memory: -2.14 GiB"""


def test_a_pool_of_less_than_nothing_is_told_beside_what_was_predicted(catalog: Snapshot) -> None:
    checked = check(GPT_OSS, {"gpu": "h100", "model": "gpt-oss-120b"}, catalog, Desk(None))
    pool = next(term for term in checked.terms if term.name == "kv_cache_bytes")

    assert (pool.measured, pool.line, pool.error_fraction) == (-2.14 * GIB, 2, None)
    assert pool.predicted
    told = f"line 2 says that the start failed for want of 2.14 GiB; {pool.predicted / GIB:.2f} GiB are predicted"
    assert told in checked.warnings
    assert f"line 2: kv_cache_bytes {pool.measured:g}, predicted {pool.predicted:g}" in lines_of(checked)


def test_a_pool_of_less_than_nothing_is_not_stored(catalog: Snapshot) -> None:
    checked = check(GPT_OSS, {"gpu": "h100", "model": "gpt-oss-120b"}, catalog, Desk(None))

    assert set(entry_of(checked).figures) == {"weight_bytes"}


def test_the_fullest_rank_says_what_is_left() -> None:
    """As vllm-project/vllm-omni issue 262 lists its ranks, the fuller one first."""
    text = (
        "(Worker_TP1 pid=104299) INFO 12-10 03:24:48 [gpu_worker.py:298] Available KV cache memory: -3.86 GiB\n"
        "(Worker_TP0 pid=104298) INFO 12-10 03:24:48 [gpu_worker.py:298] Available KV cache memory: 9.90 GiB"
    )

    figure = read_measurement(text).figures["kv_cache_bytes"]
    assert (figure.value, figure.line) == (-3.86 * GIB, 1)
