"""The accuracy report: what it compares, what it leaves out, and the page's table."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from service.calibration.report import BEGIN, END, report, write_page
from service.catalog.snapshot import Snapshot
from service.cli import app
from service.questions.examples import LLAMA_CONFIG

ROOT = Path(__file__).resolve().parents[1]
# What vLLM 0.33 computes for Llama 3.1 8B on one rank, 40 GiB of cache and 131,072 tokens.
ROW = {
    "config": "llama",
    "config_json": LLAMA_CONFIG,
    "tp": 1,
    "cache_dtype": "auto",
    "max_model_len": 131_072,
    "max_num_batched_tokens": 8_192,
    "max_num_seqs": 1_024,
    "available_kv_bytes": 42_949_672_960,
    "layer_specs": [{"kind": "full_attention"}],
    "num_gpu_blocks": 20_480,
    "kv_cache_size_tokens": 327_680,
    "max_concurrency": 2.5,
    "fits": True,
    "weights": {"param_bytes": 16_060_522_496},
}


def folder_with(folder: Path, *rows: dict[str, object]) -> Path:
    (folder / "vllm_kv_oracle.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return folder


def test_an_equal_row_counts_as_equal(tmp_path: Path, catalog: Snapshot) -> None:
    measured = report(folder_with(tmp_path, ROW), catalog)

    assert [(line.count, line.equal) for line in measured.lines] == [(1, 1.0), (1, 1.0)]
    assert "vllm_startups.jsonl" in {row.case for row in measured.skipped}


def test_a_row_of_another_gpu_is_posed_to_it(tmp_path: Path, catalog: Snapshot) -> None:
    # vLLM 0.33 on an A100 refuses it: "Number of experts in the model must be greater than 0".
    refused = {**ROW, "gpu": "A100-80GB", "case": "expert_parallel", "kv_cache_dtype": "auto", "ok": False, "tp": 2}
    planned = {**ROW, "gpu": "A100-80GB", "case": "plain", "kv_cache_dtype": "auto", "ok": True, "block_size": 16}
    rows = (refused, planned, {**planned, "num_gpu_blocks": 20_481})
    (tmp_path / "vllm_kv_oracle_gpus.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")

    found = report(folder_with(tmp_path, ROW), catalog)

    [line] = [each for each in found.lines if each.subject == "vLLM's cache plan or refusal on A100-80GB"]
    assert line.count == 3
    assert line.equal == pytest.approx(2 / 3)
    assert line.worst == "A100-80GB llama tp1 auto"


def test_a_wrong_row_is_seen(tmp_path: Path, catalog: Snapshot) -> None:
    wrong = {**ROW, "num_gpu_blocks": 20_481, "weights": {"param_bytes": 16_060_522_495}}

    measured = report(folder_with(tmp_path, wrong), catalog)

    assert [line.equal for line in measured.lines] == [0.0, 0.0]


def test_what_is_left_out_is_said_with_its_reason(tmp_path: Path, catalog: Snapshot) -> None:
    strange = {**ROW, "config": "strange", "config_json": {"architectures": ["NoSuchForCausalLM"]}}

    measured = report(folder_with(tmp_path, ROW, strange), catalog)

    assert any("NoSuchForCausalLM" in row.reason for row in measured.skipped)
    assert "NoSuchForCausalLM" in measured.text()


def test_the_table_goes_between_the_markers(tmp_path: Path, catalog: Snapshot) -> None:
    page = tmp_path / "ACCURACY.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")

    write_page(page, report(folder_with(tmp_path, ROW), catalog))

    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "100.0 %" in text
    assert "\nold\n" not in text
    with pytest.raises(ValueError, match="has no"):
        write_page(tmp_path / "vllm_kv_oracle.jsonl", report(tmp_path, catalog))


def test_the_page_has_a_table_and_the_readme_names_it() -> None:
    assert "(service/ACCURACY.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
    text = (ROOT / "service" / "ACCURACY.md").read_text(encoding="utf-8")

    assert text.index(BEGIN) < text.index("100.0 %") < text.index(END)


def test_a_page_is_left_alone_where_there_is_nothing_to_compare_with(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN}\nolder figures\n{END}\n", encoding="utf-8")
    done = CliRunner().invoke(app, ["accuracy", "--data", str(tmp_path / "none-such"), "--page", str(page)])

    assert done.exit_code == 2
    assert "none-such" in done.stderr
    assert "vllm_startups.jsonl" in done.stderr
    assert "older figures" in page.read_text(encoding="utf-8")
