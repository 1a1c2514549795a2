"""SGLang's own share of the memory, beside what its own code returns for the same arguments."""

from dataclasses import replace

import pytest

from service.catalog.engine_rules import rules_for
from service.engine.arithmetic import MIB
from service.engine.engines.static_share import PromptObstacle, Served, static_share

ONE_RANK = Served(chunk_tokens=8_192)
QWEN_VL = (24, 1_280)  # Qwen2.5-VL states a `depth`, which SGLang does not look for, and a width
GEMMA = (27, 1_152)
DEEPSEEK: frozenset[PromptObstacle] = frozenset({"latents"})


# `ServerArgs._handle_gpu_memory_settings` of each version (`__post_init__` up to 0.5.2), run on these arguments.
@pytest.mark.parametrize(
    ("version", "memory_mib", "served", "share"),
    [
        ("0.4.6", 97_871, replace(ONE_RANK, tensor_ranks=8), 0.88),
        ("0.4.6", 46_068, replace(ONE_RANK, tensor_ranks=8), 0.81),
        ("0.4.6", 46_068, replace(ONE_RANK, tensor_ranks=8, stages=2), 0.79),
        ("0.4.7", 81_559, replace(ONE_RANK, tensor_ranks=8), 0.831),
        ("0.4.7", 81_559, replace(ONE_RANK, tensor_ranks=8, drafts="own"), 0.805),
        ("0.4.7", 81_559, replace(ONE_RANK, tower=GEMMA), 0.874),
        ("0.5.9", 81_559, replace(ONE_RANK, tensor_ranks=2), 0.834),
        ("0.5.9", 81_559, replace(ONE_RANK, tensor_ranks=4), 0.824),
        ("0.5.9", 81_559, replace(ONE_RANK, tensor_ranks=8), 0.818),
        ("0.5.9", 81_559, replace(ONE_RANK, tensor_ranks=8, attention_copies=8), 0.592),
        ("0.5.9", 81_559, replace(ONE_RANK, tensor_ranks=8, drafts="own"), 0.793),
        ("0.5.9", 81_559, replace(ONE_RANK, tower=QWEN_VL), 0.748630),
        ("0.5.9", 81_559, replace(ONE_RANK, tensor_ranks=2, tower=GEMMA), 0.758720),
        ("0.5.9", 81_559, replace(ONE_RANK, chunk_tokens=4_096), 0.874),
        ("0.5.10", 81_559, replace(ONE_RANK, tensor_ranks=8), 0.812),
        ("0.5.10", 81_559, replace(ONE_RANK, tensor_ranks=4, stages=2, obstacles=frozenset({"stages"})), 0.818),
        ("0.5.10", 81_559, replace(ONE_RANK, tensor_ranks=8, is_latent=True, obstacles=DEEPSEEK), 0.799),
        (
            "0.5.10",
            81_559,
            replace(ONE_RANK, tensor_ranks=8, drafts="own", obstacles=frozenset({"drafts"})),
            0.768,
        ),
        ("0.5.10", 81_559, replace(ONE_RANK, drafts="ngram", obstacles=frozenset({"drafts"})), 0.835),
    ],
)
def test_sglang_reserves_by_what_runs(version: str, memory_mib: int, served: Served, share: float) -> None:
    rules = rules_for("sglang", version)
    assert rules.static_reserve is not None

    told = static_share(rules.static_reserve, memory_mib * MIB, rules.default_gpu_memory_utilization, served)

    assert told == pytest.approx(share, abs=1e-6)


def test_a_gpu_that_is_smaller_than_its_reserve_has_nothing_to_share() -> None:
    rules = rules_for("sglang", "0.4.7")
    assert rules.static_reserve is not None

    assert static_share(rules.static_reserve, 4_000 * MIB, 0.88, replace(ONE_RANK, tensor_ranks=16)) == 0


def test_fewer_running_requests_are_captured_since_0_5_22() -> None:
    few = replace(ONE_RANK, running=16)
    shares = []
    for version in ("0.5.21", "0.5.22"):
        reserve = rules_for("sglang", version).static_reserve
        assert reserve is not None
        shares.append([static_share(reserve, 81_559 * MIB, 0.88, served) for served in (ONE_RANK, few)])

    assert shares[0][0] == shares[0][1] == shares[1][0]
    # 240 of the 256 requests are no longer captured, at 2 MiB each.
    assert shares[1][1] - shares[1][0] == pytest.approx(480 / 81_559, abs=0.001)
