"""Layouts that the engine starts with drafts, and those it does not."""

from collections.abc import Iterator

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.engines.device import REFERENCE, device_of
from service.engine.errors import UnsupportedLayoutError
from service.engine.fleet.drafted import drafted_space
from service.engine.fleet.planned import legal_layouts
from service.engine.fleet.questions import StatedSettings
from service.engine.fleet.settings import resolve
from service.engine.fleet.space import Space
from service.engine.inputs import EngineName, Layout, SpeculativeMethod, StatedLayout


def stages(
    catalog: Snapshot,
    model: str,
    method: SpeculativeMethod,
    engine: EngineName = "vllm",
    version: str | None = None,
    stated: StatedLayout | None = None,
) -> Iterator[int]:
    """Yield the pipeline stages of the layouts that start with three drafts a step on H100."""
    drafting = StatedSettings(num_speculative_tokens=3, speculative_method=method)
    resolved = resolve(catalog.model(model), catalog.gpu("h100"), drafting, rules_for(engine, version))
    for layout in legal_layouts(resolved, stated or StatedLayout()).layouts:
        yield layout.pipeline_parallel_size


# vLLM 0.33: `supports_aux_hidden_states_over_pp` of `LlamaModel` and `Qwen2Model`, and whoever inherits from them, but
# not of `Qwen3MoeModel`, `GptOssModel` or `DeepseekV2Model`; 0.29 "EAGLE3 with pipeline parallelism"
@pytest.mark.parametrize(
    ("model", "method", "version", "goes_on"),
    [
        ("llama-3.3-70b", "eagle3", None, True),
        ("qwen2.5-vl-72b-instruct", "eagle3", None, True),
        ("llama-3.3-70b", "eagle3", "0.29", False),
        ("qwen3-235b-a22b", "eagle3", None, False),
        ("gpt-oss-120b", "eagle3", None, False),
        ("qwen3-235b-a22b", "ngram", None, True),
        ("deepseek-v3", "mtp", None, True),
    ],
)
def test_few_classes_hand_early_states_from_stage_to_stage(
    catalog: Snapshot, model: str, method: SpeculativeMethod, version: str | None, *, goes_on: bool
) -> None:
    assert (max(stages(catalog, model, method, version=version)) > 1) is goes_on


# SGLang 0.5.23 `validation_hook.py`: "PP + speculative decoding (MTP) is only supported on prefill nodes"; 0.5.4
# `server_args.py`: "Pipeline parallelism is not compatible with overlap schedule, speculative decoding"
@pytest.mark.parametrize("version", ["0.5.4", "0.5.23"])
@pytest.mark.parametrize(("model", "method"), [("deepseek-v3", "mtp"), ("llama-3.3-70b", "ngram")])
def test_sglang_drafts_in_one_stage(catalog: Snapshot, model: str, method: SpeculativeMethod, version: str) -> None:
    assert set(stages(catalog, model, method, "sglang", version)) == {1}
    with pytest.raises(UnsupportedLayoutError, match="does not draft with") as refused:
        list(stages(catalog, model, method, "sglang", version, StatedLayout(pipeline_parallel_size=2)))
    assert refused.value.field == "pipeline_parallel_size"


def test_ranks_divide_the_vocabulary_of_a_head_of_its_own(catalog: Snapshot) -> None:
    """vLLM 0.33 `llama_eagle3.py`: `ParallelLMHead(self.config.draft_vocab_size)`, 32,000 rows; SGLang pads them."""
    drafting = StatedSettings(num_speculative_tokens=3, speculative_method="eagle3")
    model, gpu = catalog.model("llama-3.1-8b"), catalog.gpu("h100")
    settings = resolve(model, gpu, drafting, rules_for("vllm")).settings
    two, three = Layout(tensor_parallel_size=2), Layout(tensor_parallel_size=3)
    space = Space(usual=(two, three), unusual=())

    assert drafted_space(space, model.architecture, settings, REFERENCE).layouts == (two,)
    assert drafted_space(space, model.architecture, settings, device_of(gpu, rules_for("sglang"))) is space
    with pytest.raises(UnsupportedLayoutError, match="32000 rows"):
        drafted_space(Space(usual=(three,), unusual=()), model.architecture, settings, REFERENCE)
