"""Step times of GPUs whose kernels nobody measured: the referee is a sibling with kernels of its own."""

from dataclasses import replace

import numpy as np
import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.fleet.checkpoints import own_checkpoint
from service.engine.inputs import Gpu, Layout
from service.engine.time.steps import Deployed
from service.performance.estimated import estimated_step_tables
from service.performance.fitted import MOST_ERROR
from service.performance.kernels import measured_step_tables
from service.performance.siblings import CARRIED_ERROR, carried_over, measured_gpus, sibling_of
from service.performance.tables import Floats
from tests.conftest import shared_tables, shared_timers

MODELS = ("llama-3.1-8b", "qwen3-30b-a3b")
PAIRS = (("h100", "h200"), ("h200", "h100"), ("b200", "gb200-nvl72"))


def deployed(catalog: Snapshot, model: str, gpu: str, ranks: int = 1) -> Deployed:
    facts = catalog.model(model)
    return Deployed(
        model=facts,
        checkpoint=own_checkpoint(facts),
        gpu=catalog.gpu(gpu),
        layout=Layout(tensor_parallel_size=ranks),
        kv_cache_dtype="bf16",
        rules=rules_for("vllm"),
    )


def figures(gpu: Gpu) -> tuple[object, ...]:
    links = gpu.scale_up_domain_gpus, gpu.scale_up_bytes_per_s, gpu.scale_out_bytes_per_s, gpu.gpus_per_node
    kind = gpu.vendor, gpu.architecture, gpu.compute_capability, gpu.measured_as
    return gpu.id, kind, gpu.memory_bandwidth_bytes_per_s, dict(gpu.peak_flop_per_s), links


def test_every_gpu_with_measured_kernels_is_described_as_in_the_seed(catalog: Snapshot) -> None:
    seeded = sorted(figures(gpu) for gpu in catalog.gpus.values() if gpu.measured_as is not None)

    assert sorted(map(figures, measured_gpus())) == seeded


@pytest.mark.parametrize(("factor", "is_measured"), [(1.04, True), (1.5, False), (0.5, False)])
def test_a_copy_with_other_figures_is_not_what_was_measured(
    catalog: Snapshot, factor: float, *, is_measured: bool
) -> None:
    # Whoever asks what another bandwidth would do copies an entry, with the name under which it was measured.
    l40s = catalog.gpu("l40s")
    bandwidth = factor * l40s.memory_bandwidth_bytes_per_s
    copied = replace(l40s, id="l40s-of-another-year", memory_bandwidth_bytes_per_s=bandwidth)
    here = deployed(catalog, "llama-3.1-8b", "l40s")
    there = replace(here, gpu=copied)
    before, after = shared_timers().timer(here), shared_timers().timer(there)

    assert before is not None
    assert after is not None
    assert after.basis.is_measured is is_measured
    assert ("times of l40s" in after.basis.note) is not is_measured
    steps_s = [timing.steps.decode_s(1, 1_024.0) for timing in (before, after)]
    assert steps_s[1] == pytest.approx(steps_s[0] if is_measured else steps_s[0] / factor, rel=0.2)


@pytest.mark.parametrize(
    ("gpu", "sibling"),
    [
        ("h100-nvl-94gb", "h100-sxm-80gb"),
        ("h200-nvl-141gb", "h200-sxm-141gb"),
        ("a100-pcie-40gb", "a100-sxm-80gb"),
        ("rtx-4090", "l40s"),
        ("rtx-5090", "rtx-pro-6000-server"),
    ],
)
def test_a_sibling_is_of_the_same_generation(catalog: Snapshot, gpu: str, sibling: str) -> None:
    found = sibling_of(catalog.gpu(gpu))

    assert found is not None
    assert found.id == sibling


@pytest.mark.parametrize("gpu", ["h100", "mi300x", "rtx-3090", "t4"])
def test_kernels_of_its_own_or_of_nobody_leave_no_sibling(catalog: Snapshot, gpu: str) -> None:
    assert sibling_of(catalog.gpu(gpu)) is None


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("known", "wanted"), PAIRS)
def test_carried_times_are_those_that_were_measured(catalog: Snapshot, model: str, known: str, wanted: str) -> None:
    """Referee: kernels that aiconfigurator-core measured on both GPUs."""
    here, there = (deployed(catalog, model, gpu) for gpu in (wanted, known))
    estimated = estimated_step_tables(here)
    truth = measured_step_tables(here, shared_tables())
    carried = carried_over(measured_step_tables(there, shared_tables()), estimated, estimated_step_tables(there))

    for part in ("decode", "tokens"):
        exact = np.array(getattr(truth, part))
        errors, by_roofline = (_errors(np.array(getattr(each, part)), exact) for each in (carried, estimated))
        assert np.quantile(errors, 0.9) <= CARRIED_ERROR
        assert np.median(errors) < np.median(by_roofline)


def _errors(times: Floats, exact: Floats) -> Floats:
    """Return how often too long or too short times are, less one."""
    return np.maximum(times / exact, exact / times) - 1


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("weaker", "stronger"), [("h200-nvl-141gb", "h200"), ("h20-sxm-141gb", "h200"), ("l4", "l40s"), ("a30", "a100")]
)
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_gpu_that_is_nowhere_better_is_nowhere_faster(
    catalog: Snapshot, model: str, weaker: str, stronger: str, ranks: int
) -> None:
    timers = shared_timers()
    slow, fast = (timers.timer(deployed(catalog, model, gpu, ranks)) for gpu in (weaker, stronger))

    assert slow is not None
    assert fast is not None
    for requests in (1, 32, 256):  # formats are put in order on each GPU alone, which moves a hundredth
        assert slow.steps.decode_s(requests, 2_000) >= fast.steps.decode_s(requests, 2_000) * 0.98
        assert slow.steps.mixed_s(2_048, 512, requests, 2_000) >= fast.steps.mixed_s(2_048, 512, requests, 2_000) * 0.98


def test_what_is_carried_says_from_where_and_is_less_sure(catalog: Snapshot) -> None:
    timers = shared_timers()
    here, there = (timers.timer(deployed(catalog, "llama-3.1-8b", gpu)) for gpu in ("h100-nvl", "h100"))

    assert here is not None
    assert there is not None
    assert (here.basis.name, here.basis.is_measured) == ("roofline", False)
    assert "times of h100-sxm-80gb" in here.basis.note
    assert here.basis.expected_error_fraction > there.basis.expected_error_fraction


@pytest.mark.parametrize("model", ["qwen3-next-80b-a3b", "nemotron-3-super-120b-a12b", "gpt-oss-120b"])
def test_no_error_is_told_beyond_the_most_that_is_told(catalog: Snapshot, model: str) -> None:
    timing = shared_timers().timer(deployed(catalog, model, "h100-nvl", 2))

    assert timing is not None
    assert timing.basis.expected_error_fraction <= MOST_ERROR
    assert timing.basis.pace_error_fraction <= MOST_ERROR


def test_a_gpu_of_a_callers_own_has_a_sibling_too(catalog: Snapshot) -> None:
    own = replace(catalog.gpu("h100-nvl-94gb"), id="our-own", name="our own H100")
    found = sibling_of(own)

    assert found is not None
    assert found.id == "h100-sxm-80gb"
