"""Runs that SGLang's cookbook prints."""

from service.calibration.logs.cookbook import cookbook_rows
from service.calibration.logs.serving import read_serving
from service.calibration.serving import Run, resolve_run
from service.catalog.snapshot import Snapshot
from service.engine import UniformLength


def test_a_row_is_what_its_page_prints() -> None:
    # docs/autoregressive/DeepSeek/DeepSeek-R1.md: ten prompts of a single user, on eight B200.
    row = cookbook_rows()[0]
    log = read_serving(row)

    assert str(row["source_url"]).endswith("docs/autoregressive/DeepSeek/DeepSeek-R1.md")
    assert (log.engine, log.version, log.gpu, log.ranks.tensor_parallel_size) == ("sglang", "0.5.6.post1", "b200", 8)
    assert (log.sent.users, log.sent.count) == (1, 10)
    assert {(seen.quantity, seen.percent): seen.value_s for seen in log.latencies} == {
        ("ttft", 50.0): 0.14076,
        ("tpot", None): 0.00916,
        ("tpot", 50.0): 0.00915,
    }
    assert log.tokens_per_s == 105.24


def test_random_lengths_are_drawn_evenly_from_one_token_to_twice_their_mean() -> None:
    # `bench_serving --random-input-len 1000 --random-output-len 1000` with its range ratio of 0.
    log = read_serving(cookbook_rows()[2])

    assert log.inputs == UniformLength(shortest_tokens=1, longest_tokens=998)
    assert log.outputs == UniformLength(shortest_tokens=1, longest_tokens=1_008)


def test_every_row_is_one_run_that_can_be_simulated(catalog: Snapshot) -> None:
    rows = cookbook_rows()
    runs = [resolve_run(row, catalog) for row in rows]

    assert len({row["id"] for row in rows}) == len(rows) > 100
    assert [run for run in runs if not isinstance(run, Run)] == []
    assert {row["reported"]["output_tokens_per_s"] is None for row in rows} == {True, False}
