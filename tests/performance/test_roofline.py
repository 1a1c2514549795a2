"""Step times from data sheets: nothing is faster than its bytes and FLOP allow."""

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.formats.quantization import UNQUANTIZED
from service.engine.inputs import Layout
from service.engine.time.records import CONTEXTS, REQUESTS, TOKENS
from service.performance.fitted import efficiencies_for
from service.performance.roofline import FLOOR, own_share, roofline_tables
from service.performance.tables import StepTables
from service.performance.workload import workload_of

WEIGHT_BYTES = 2 * (8_030_261_248 - 128_256 * 4_096)  # Llama 3.1 8B without the table that a step does not read


def tables(catalog: Snapshot, tp: int = 1) -> StepTables:
    layout, gpu = Layout(tensor_parallel_size=tp), catalog.gpu("h100")
    work = workload_of(catalog.model("llama-3.1-8b").architecture, UNQUANTIZED, gpu, layout, "auto")
    return roofline_tables(work, gpu, layout, FLOOR)


def test_one_request_reads_the_weights_once_and_its_own_cache(catalog: Snapshot) -> None:
    # H100 SXM: 3.35 TB/s (data sheet); 131,072 bytes for each token of context.
    seconds = tables(catalog).decode[0][-1]

    assert REQUESTS[0] == 1
    assert seconds == pytest.approx((WEIGHT_BYTES + CONTEXTS[-1] * 131_072) / 3.35e12, rel=5e-3)


def test_many_tokens_are_bound_by_multiplications(catalog: Snapshot) -> None:
    # 989.4 TFLOP/s dense in bf16 (data sheet), 2 FLOP a parameter and token, the head for one token left out.
    flop = 2 * (8_030_261_248 - 2 * 128_256 * 4_096) * TOKENS[-1]

    assert tables(catalog).tokens[-1] == pytest.approx(flop / 989.4e12, rel=2e-2)


def test_ranks_divide_bytes_and_pay_for_talking(catalog: Snapshot) -> None:
    one, two = tables(catalog), tables(catalog, tp=2)

    assert one.decode[0][0] / 2 < two.decode[0][0] < one.decode[0][0]


@pytest.mark.parametrize("gpu", ["mi300x", "a10g"])
def test_stages_pay_for_handing_on(catalog: Snapshot, gpu: str) -> None:
    """The least that a hop takes: tokens x hidden x 2 bytes over the link that GPUs share; there are stages - 1."""
    model, part = catalog.model("qwen2.5-7b").architecture, catalog.gpu(gpu)
    reached, work = efficiencies_for(part, "vllm"), workload_of(model, UNQUANTIZED, part, Layout(), "bf16")
    one, two, four = (
        roofline_tables(work, part, Layout(pipeline_parallel_size=stages), reached).tokens for stages in (1, 2, 4)
    )

    handed_s = TOKENS[-1] * model.hidden_size * 2 / part.scale_up_bytes_per_s
    assert two[-1] - one[-1] > handed_s
    assert four[-1] - one[-1] == pytest.approx(3 * (two[-1] - one[-1]))
    assert two[0] > one[0]


def test_of_a_step_of_copies_less_is_their_own_the_slower_the_link_between_them(catalog: Snapshot) -> None:
    """DeepSeek-V3 (arXiv:2412.19437): 20.4 of 37 billion active parameters are of experts; H200: 450 and 50 GB/s."""
    model, gpu = catalog.model("deepseek-v3"), catalog.gpu("h200")
    of_one, of_server, of_two = (
        own_share(workload_of(model.architecture, model.checkpoints[0].quantization, gpu, layout, "auto"), gpu, layout)
        for layout in (Layout(), *(Layout(data_parallel_size=copies, expert_parallel=True) for copies in (8, 16)))
    )

    assert of_one == pytest.approx((37 - 20.4) / 37, rel=0.1)
    assert of_two < of_server < of_one
    exchanged = {copies: 58 * 2 * (copies - 1) * 7_168 * 2 for copies in (8, 16)}  # bytes of a token
    seconds = {8: exchanged[8] / 450e9, 16: exchanged[16] / 400e9}
    assert (1 / of_two - 1 / of_server) / (1 / of_server - 1 / of_one) == pytest.approx(
        (seconds[16] - seconds[8]) / seconds[8], rel=1e-6
    )
