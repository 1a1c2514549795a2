"""What a request waits outside iterations, and what times depend on."""

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.time.steps import RequestOverhead, deployed
from tests.engine.time.conftest import plan_of, timing


def test_a_request_waits_for_http_and_for_each_token_of_its_prompt() -> None:
    overhead = RequestOverhead(base_s=0.010, s_per_prompt_token=1e-6)

    assert overhead.of_prompt(5_000) == pytest.approx(0.015)
    assert overhead.longer(0.1).of_prompt(5_000) == pytest.approx(0.115)


def test_plans_that_differ_in_batches_alone_are_timed_alike(catalog: Snapshot) -> None:
    one, other = plan_of(catalog, max_num_seqs=8), plan_of(catalog, max_num_seqs=64)

    assert deployed(one) == deployed(other)
    assert timing() == timing()
