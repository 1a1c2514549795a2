"""What was drafted while a benchmark ran is said by its result, and by the server that it was run on."""

import json
from typing import Any

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.time.drafting import tokens_per_step
from service.measurements.checking import check
from service.measurements.drafted import chance
from service.measurements.reading import read_measurement
from service.questions.asked import Desk
from service.questions.refusals import RefusalError

LLAMA = {"model": "llama-3.1-8b", "gpu": "h100"}
GIB = 1 << 30
# As vLLM 0.33 `benchmarks/serve.py` (`--save-result`) writes them; figures are made up.
RESULT: dict[str, Any] = {
    "backend": "vllm", "model_id": "meta-llama/Llama-3.1-8B-Instruct", "num_prompts": 200, "request_rate": "inf",
    "max_concurrency": 8, "completed": 200, "total_input_tokens": 204_800, "total_output_tokens": 25_600,
    "request_throughput": 3.0, "output_throughput": 400.0, "mean_ttft_ms": 90.0, "mean_tpot_ms": 6.0,
}  # fmt: skip
COUNTED = {
    "spec_decode_acceptance_rate": 61.2, "spec_decode_acceptance_length": 2.84, "spec_decode_num_drafts": 1200,
    "spec_decode_draft_tokens": 3600, "spec_decode_accepted_tokens": 2203,
}  # fmt: skip
PLACES = {"spec_decode_per_position_acceptance_rates": [0.8, 0.6, 0.4]}
# vllm-project/vllm pull request 36029, without its places: `Acceptance length` and what stands around it.
PRINTED = """============ Serving Benchmark Result ============
Successful requests:                     1536
Maximum request concurrency:             32
Benchmark duration (s):                  374.83
Total input tokens:                      3160578
Total generated tokens:                  952460
Mean TTFT (ms):                          178.40
Mean TPOT (ms):                          11.88
---------------Speculative Decoding---------------
Acceptance rate (%):                     61.24
Acceptance length:                       2.84
Drafts:                                  4507
Draft tokens:                            13521
Accepted tokens:                         8280
"""
SERVER = {
    "model_path": "meta-llama/Llama-3.1-8B-Instruct", "speculative_algorithm": "EAGLE3", "speculative_num_steps": 3,
    "speculative_num_draft_tokens": 4,
}  # fmt: skip


@pytest.mark.parametrize("drafted", range(1, 9))
@pytest.mark.parametrize("each", [0.0, 0.3, 0.62, 0.9, 1.0])
def test_the_chance_of_a_draft_makes_the_tokens_of_a_step(drafted: int, each: float) -> None:
    kept = tokens_per_step(drafted, each)

    assert tokens_per_step(drafted, chance(kept, drafted)) == pytest.approx(kept, abs=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(RESULT | COUNTED),
        json.dumps(RESULT | COUNTED | PLACES),
        PRINTED,
        json.dumps(RESULT | {"backend": "sglang", "accept_length": 2.84, "server_info": SERVER}),
    ],
    ids=["counted", "places", "printed", "server"],
)
def test_a_result_says_what_was_drafted(text: str) -> None:
    said = read_measurement(text).settings

    assert (said["tokens_per_step"], said["num_speculative_tokens"]) == (2.84, 3)


def test_a_result_is_compared_with_its_drafts(catalog: Snapshot) -> None:
    text = json.dumps(RESULT | COUNTED)
    drafted = check(text, LLAMA, catalog, Desk(None))
    plain = check(text, LLAMA | {"num_speculative_tokens": 0}, catalog, Desk(None))

    # By hand: 1 + 0.775 + 0.775^2 + 0.775^3 is 2.84; the rate that is printed, 0.612, is kept drafts over drafts.
    assert drafted.question["speculative_acceptance_fraction"] == pytest.approx(0.775, abs=0.001)
    assert "speculative_acceptance_fraction" not in plain.question


def test_how_many_were_drafted_is_asked_for_where_no_text_says_it(catalog: Snapshot) -> None:
    text = json.dumps(RESULT | {"backend": "sglang", "accept_length": 3.12})

    with pytest.raises(RefusalError) as refusal:
        check(text, LLAMA, catalog, Desk(None))
    with pytest.raises(RefusalError, match="more than 2 drafts and the model's own"):
        check(text, LLAMA | {"num_speculative_tokens": "2"}, catalog, Desk(None))
    checked = check(text, LLAMA | {"num_speculative_tokens": "3"}, catalog, Desk(None))

    assert refusal.value.faults[0].field == "question.num_speculative_tokens"
    assert checked.question["speculative_acceptance_fraction"] == pytest.approx(0.836, abs=0.001)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("vllm serve m/n --speculative-config '{\"method\": \"ngram\", \"num_speculative_tokens\": 4}'", ("ngram", 4)),
        ("vllm serve m/n --speculative_config='{\"num_speculative_tokens\":2,\"method\":\"mtp\"}'", ("mtp", 2)),
        ("args: Namespace(model='m/n', speculative_config={'method': 'eagle3', 'num_speculative_tokens': 3})",
         ("eagle3", 3)),
        ("python -m sglang.launch_server --model-path m/n --speculative-algorithm NEXTN --speculative-num-steps 1",
         ("mtp", 1)),
    ],
    ids=["command", "joined", "arguments", "sglang"],
)  # fmt: skip
def test_a_server_says_who_drafts(line: str, said: tuple[str, int]) -> None:
    loaded = "#tokens: 9, K size: 1.00 GB, V size: 1.00 GB" if "sglang" in line else "Model loading took 8.00 GiB"

    settings = read_measurement(f"{line}\n{loaded}").settings

    assert (settings["speculative_method"], settings["num_speculative_tokens"], settings["model"]) == (*said, "m/n")


def test_what_sglang_tells_of_the_model_alone_is_not_held_against_model_and_drafter() -> None:
    log = (
        "server_args=ServerArgs(model_path='m/n', tp_size=1, speculative_algorithm='EAGLE3', speculative_num_steps=3, "
        "speculative_num_draft_tokens=4)\n"
        "Load weight end. type=Qwen3ForCausalLM, avail mem=63.24 GB, mem usage=15.34 GB.\n"
        "KV Cache is allocated. #tokens: 364521, K size: 25.03 GB, V size: 25.03 GB\n"
        "Load weight end. type=LlamaForCausalLMEagle3, avail mem=9.8 GB, mem usage=0.78 GB.\n"
    )

    observed = read_measurement(log)

    assert observed.figures.keys() == {"kv_cache.tokens"}
    assert observed.settings["num_speculative_tokens"] == 3


def test_a_start_with_another_drafter_is_not_compared_by_its_room(catalog: Snapshot) -> None:
    """https://github.com/sostrowsk/dgx-spark-local-llm, laguna-int4-pinned.log: vLLM 0.25.1 drafts with DFlash."""
    text = """(EngineCore pid=37032) INFO 08-04 07:38:56 [core.py:114] Initializing a V1 LLM engine (v0.25.1) with config: \
model='poolside/Laguna-S-2.1-INT4', speculative_config=SpeculativeConfig(method='dflash', \
model='poolside/Laguna-S-2.1-DFlash-INT4', num_spec_tokens=15), max_seq_len=262144
(EngineCore pid=37032) INFO 08-04 07:40:59 [gpu_model_runner.py:5306] Model loading took 69.34 GiB memory and 120.825920 seconds
(EngineCore pid=37032) INFO 08-04 07:41:43 [gpu_worker.py:538] Available KV cache memory: 35.64 GiB
(EngineCore pid=37032) INFO 08-04 07:41:54 [gpu_model_runner.py:6707] Graph capturing finished in 8 secs, took 0.11 GiB"""

    checked = check(text, {"gpu": "gb10", "model": "laguna-s-2.1"}, catalog, Desk(None))

    assert {term.name for term in checked.terms} == {"cuda_graph_bytes"}
    assert not {"speculative_method", "num_speculative_tokens"} & checked.question.keys()
    assert any("line 1 says that dflash drafts, which no answer counts" in each for each in checked.warnings)
