"""Two batches that overlap, beside what LMSYS published of the same pools with and without (May 2025)."""

import pytest

from service.catalog.snapshot import Snapshot
from tests.performance.test_exchanged import SERVER_GPUS, timing_of


@pytest.mark.parametrize(("requests", "published"), [(32, 0.73), (256, 1.255)])
def test_a_step_that_decodes_gains_what_was_published(catalog: Snapshot, requests: int, published: float) -> None:
    # lmsys.org/blog/2025-05-05-large-scale-ep: "-27% at 32 tokens/device", "25.5% at 256 tokens", of 72 H100.
    alone, overlapped = (
        timing_of(catalog, 64, overlaps=each).steps.decode_s(requests, 2_000) for each in (False, True)
    )

    assert alone / overlapped == pytest.approx(published, rel=0.1)


def test_it_begins_to_gain_between_64_and_128_requests(catalog: Snapshot) -> None:
    # The same: "a threshold between 64 and 128 tokens".
    gains = [
        timing_of(catalog, 64).steps.decode_s(requests, 2_000)
        / timing_of(catalog, 64, overlaps=True).steps.decode_s(requests, 2_000)
        for requests in (64, 128)
    ]

    assert gains[0] < 1 < gains[1]


@pytest.mark.parametrize("prompt", [1_024, 4_096])
def test_prompts_gain_what_was_published(catalog: Snapshot, prompt: int) -> None:
    # The same, 8,192 tokens on each of 32 H100: "a 27% to 35% throughput increase".
    alone, overlapped = (
        timing_of(catalog, 32, overlaps=each).steps.mixed_s(8_192, prompt / 2, 0, 0) for each in (False, True)
    )

    assert 1.25 < alone / overlapped < 1.37


@pytest.mark.parametrize(("prompt", "published"), [(1_024, 57_674), (2_048, 54_543), (4_096, 50_302)])
def test_a_pool_reads_what_was_published(catalog: Snapshot, prompt: int, published: int) -> None:
    # The same, 16,384 tokens on each, a server's.
    step_s = timing_of(catalog, 32, overlaps=True).steps.mixed_s(16_384, prompt / 2, 0, 0)

    assert SERVER_GPUS * 16_384 / step_s == pytest.approx(published, rel=0.16)


def test_one_request_is_no_two_batches(catalog: Snapshot) -> None:
    alone, overlapped = (timing_of(catalog, 32, overlaps=each).steps.decode_s(1, 2_000) for each in (False, True))

    assert alone == overlapped
