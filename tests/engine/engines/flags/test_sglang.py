"""SGLang's command line (`server_args.py`)."""

import shlex
from dataclasses import replace

import pytest

from service.engine.engines.flags.base import Args, StartFlags
from service.engine.engines.registry import engine_named
from service.engine.inputs import Layout
from tests.engine.engines.flags.test_base import START

LINE = engine_named("sglang").command_line


def value(args: Args, flag: str) -> str:
    return args[args.index(flag) + 1]


def test_copies_of_the_attention_count_within_the_tensor_parallel_size() -> None:
    """DeepSeek on 8 GPUs: `--tp-size 8 --dp-size 8 --enable-dp-attention` in SGLang's own documentation."""
    args = LINE.sized(replace(START, layout=Layout(data_parallel_size=8, expert_parallel=True)))

    assert (value(args, "--tp-size"), value(args, "--dp-size"), value(args, "--ep-size")) == ("8", "8", "8")
    assert "--enable-dp-attention" in args


def test_requests_and_tokens_are_of_all_copies_of_the_attention() -> None:
    """SGLang: "DP attention is enabled. The chunked prefill size is adjusted to", `max_running_requests // dp_size`."""
    args = LINE.sized(replace(START, layout=Layout(data_parallel_size=8, expert_parallel=True)))
    copied = LINE.sized(replace(START, has_experts=False, layout=Layout(data_parallel_size=8)))

    assert value(args, "--max-running-requests") == str(8 * START.settings.max_num_seqs)
    assert value(args, "--chunked-prefill-size") == str(8 * START.settings.max_num_batched_tokens)
    assert value(copied, "--max-running-requests") == str(START.settings.max_num_seqs)


def test_a_dense_model_is_copied_whole() -> None:
    args = LINE.sized(replace(START, has_experts=False, layout=Layout(data_parallel_size=8)))

    assert (value(args, "--tp-size"), value(args, "--dp-size")) == ("1", "8")
    assert "--enable-dp-attention" not in args


def test_adapters_to_come_name_every_module() -> None:
    """SGLang 0.5.23 `arg_groups/lora_hook.py`: without adapters at the start, ranks and modules are both asked for."""
    loras = replace(START, settings=replace(START.settings, max_loras=4, max_lora_rank=32))

    assert value(LINE.sized(loras), "--lora-target-modules") == "all"
    assert "--lora-target-modules" not in LINE.sized(START)


def test_whole_copies_stay_on_one_server() -> None:
    """SGLang 0.5.23 `arg_groups/validation_hook.py`: "multi-node data-parallel replicas are not supported"."""
    copied, dealt = replace(START, layout=Layout(data_parallel_size=16)), START

    assert "whole copies" in str(LINE.spreads_unevenly(replace(copied, has_experts=False)))
    assert LINE.spreads_unevenly(copied) is None
    assert LINE.spreads_unevenly(dealt) is None


@pytest.mark.parametrize(
    ("ranks", "stages", "starts"), [(8, 2, True), (4, 4, True), (16, 1, True), (4, 3, False), (2, 5, False)]
)
def test_stages_that_servers_do_not_share_evenly_do_not_start(ranks: int, stages: int, *, starts: bool) -> None:
    """SGLang 0.5.23 `srt/entrypoints/engine.py`: `pp_size_per_node = max(pp_size // nnodes, 1)`, the rest is nobody's."""
    layout = Layout(tensor_parallel_size=ranks, pipeline_parallel_size=stages)

    assert (LINE.spreads_unevenly(replace(START, layout=layout)) is None) is starts


def test_every_node_starts_with_its_rank() -> None:
    rows = [shlex.split(row) for row in LINE.command(START, (), frozenset()).splitlines() if row[0] != "#"]

    assert [row[row.index("--node-rank") + 1] for row in rows] == ["0", "1"]
    assert LINE.most_sequences(64, 1) is None


def test_the_dtype_of_states_matrices_is_named() -> None:
    """SGLang 0.5.23 `arg_groups/fields/exec_.py` (`mamba_ssm_dtype`)."""
    stated = replace(START, stated=StartFlags(mamba_ssm_cache_dtype="bfloat16"))

    assert value(LINE.sized(stated), "--mamba-ssm-dtype") == "bfloat16"
    assert "--mamba-ssm-dtype" not in LINE.sized(START)


def test_the_checkpoints_own_drafts_are_named() -> None:
    """SGLang's cookbook for Qwen3-Next: steps 3, topk 1 and 4 draft tokens, the algorithm NEXTN, which is EAGLE."""
    drafting = replace(START.settings, num_speculative_tokens=3, speculative_method="mtp")
    args = LINE.sized(replace(START, settings=drafting))
    by_lookup = LINE.sized(replace(START, settings=replace(drafting, speculative_method="ngram")))

    assert value(args, "--speculative-algorithm") == "EAGLE"
    assert value(args, "--speculative-num-steps") == "3"
    assert value(args, "--speculative-eagle-topk") == "1"
    assert value(args, "--speculative-num-draft-tokens") == "4"
    assert "--speculative-algorithm" not in by_lookup
