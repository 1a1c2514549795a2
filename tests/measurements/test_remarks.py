"""Printed results as people quote them: with remarks behind figures, emphasis, and marks before lines."""

import pytest

from service.measurements.reading import read_measurement

LINES = (
    "============ Serving Benchmark Result ============",
    "Successful requests:                     200",
    "Maximum request concurrency:             16",
    "Total input tokens:                      204800",
    "Total generated tokens:                  25600",
    "Output token throughput (tok/s):         245.90",
    "Mean TTFT (ms):                          80.10",
    "Mean TPOT (ms):                          12.10",
)
RESULT = "\n".join(LINES)


@pytest.mark.parametrize(
    "text",
    [
        RESULT.replace("245.90", "245.90   ← key metric"),
        RESULT.replace("245.90", "245.90 (+12 %)"),
        RESULT.replace("80.10", "80.10 ms").replace("245.90", "245.90 tok/s"),
        RESULT.replace("80.10", "80.10  # warm"),
        RESULT.replace(LINES[6], f"**{LINES[6]}**"),
        RESULT.replace(LINES[6], f"##**{LINES[6]}**"),
        RESULT.replace("80.10", "**80.10**"),
        "\n".join(f"+{line}" for line in LINES),
        "\n".join(f"- {line}" for line in LINES),
    ],
    ids=["arrow", "change", "units", "comment", "bold", "heading", "bold figure", "diff", "list"],
)
def test_what_is_written_around_a_figure_hides_it_not(text: str) -> None:
    observed = read_measurement(text)

    seen = {name: figure.value for name, figure in observed.figures.items()}
    assert seen == pytest.approx({"output_tokens_per_s": 245.9, "ttft_s.mean": 0.0801, "tpot_s.mean": 0.0121})
    assert observed.settings == {
        "concurrent_requests": 16, "num_prompts": 200, "input_tokens": 1_024, "output_tokens": 128,
    }  # fmt: skip


@pytest.mark.parametrize("arrow", ["->", "→", "=>"])
def test_a_figure_that_became_another_is_neither(arrow: str) -> None:
    observed = read_measurement(RESULT.replace("80.10", f"80.10 {arrow} 75.20"))

    assert "ttft_s.mean" not in observed.figures
    assert observed.figures["tpot_s.mean"].value == pytest.approx(0.0121)
