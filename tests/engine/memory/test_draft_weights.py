"""What the layers that draft weigh, against published checkpoints."""

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.engines.device import device_of
from service.engine.inputs import EngineName, Layout
from service.engine.layers import Architecture, DraftHead
from service.engine.memory.draft_weights import as_loaded, draft_matrices
from service.engine.memory.drafts import draft_head
from service.engine.memory.weights import rank_weights

SCALES = "cache_scales"


def eagle3(architecture: Architecture) -> DraftHead:
    head = draft_head(architecture, "eagle3")
    assert head is not None
    return head


@pytest.mark.parametrize(
    ("model", "printed"),
    [
        # huggingface.co/Qwen/Qwen3.5-9B: of 9,653,104,368 parameters 243,290,624 are the draft layer's.
        ("qwen3.5-9b", 243_290_624),
        # huggingface.co/tencent/Hy3-preview: so many more than its 80 layers and tables have.
        ("hy3-preview", 3_752_612_288),
    ],
)
def test_a_module_has_the_parameters_of_its_checkpoint(catalog: Snapshot, model: str, printed: int) -> None:
    head = draft_head(catalog.model(model).architecture, "mtp")
    assert head is not None

    assert sum(it.elements for it in draft_matrices(head, Layout()) if not it.module.endswith(SCALES)) == printed


def test_behind_stages_a_draft_keeps_an_embedding_table_of_its_own(catalog: Snapshot) -> None:
    head = eagle3(catalog.model("llama-3.1-8b").architecture)
    one, two = (
        sum(it.elements for it in draft_matrices(head, Layout(pipeline_parallel_size=stages))) for stages in (1, 2)
    )

    assert two - one == 128_256 * 4_096


def test_eagle_3_reads_three_states_beside_the_embedding(catalog: Snapshot) -> None:
    matrices = {it.module: it for it in draft_matrices(eagle3(catalog.model("llama-3.1-8b").architecture), Layout())}

    # huggingface.co/yuhuili/EAGLE3-LLaMA3.1-Instruct-8B: fc.weight 4,096 x 12,288, lm_head.weight 32,000 x 4,096,
    # queries, keys and values of 8,192 inputs, half of them the model's own width.
    assert matrices["model.draft_projection"].columns == 12_288
    assert (matrices["model.draft_table"].rows, matrices["model.draft_table"].columns) == (32_000, 4_096)
    inputs = matrices["model.draft_inputs"]
    assert (inputs.rows, inputs.columns) == (4_096 + 2 * 1_024, 4_096)


def test_drafts_share_embeddings_before_pools_are_sized_up_to_0_5_14(catalog: Snapshot) -> None:
    facts, layout = catalog.model("glm-5.2"), Layout(data_parallel_size=8)
    loaded = [
        rank_weights(
            facts.architecture, layout=layout, quantization=facts.checkpoints[0].quantization,
            draft=facts.architecture.mtp, device=device_of(catalog.gpu("h200"), rules_for("sglang", version)),
        ).by_component["draft"]
        for version in ("0.5.14", "0.5.15")
    ]  # fmt: skip

    # A table of 154,880 rows on each copy of the attention, and an eighth of the output head.
    assert loaded[1] - loaded[0] == (154_880 + 154_880 // 8) * 6_144 * 2


# SGLang 0.5.15 `managers/tp_worker.py`: a model runner for each of `speculative_num_steps`, each of which loads one
# `mtp_block` of `models/mimo_v2_nextn.py` with embeddings and a head; of other models one runner drafts all tokens.
@pytest.mark.parametrize(
    ("engine", "version", "model", "times"),
    [
        ("sglang", "0.5.15", "mimo-v2.5", 3),
        ("sglang", "0.5.15", "glm-5.2", 1),
        ("vllm", "0.33", "mimo-v2.5", 1),
    ],
)
def test_sglang_loads_mimo_s_module_for_each_drafted_token(
    catalog: Snapshot, engine: EngineName, version: str, model: str, times: int
) -> None:
    facts, rules = catalog.model(model), rules_for(engine, version)
    quantization = next(it.quantization for it in facts.checkpoints if it.is_default)
    head = draft_head(facts.architecture, "mtp")
    one, three = (
        rank_weights(
            facts.architecture,
            layout=Layout(tensor_parallel_size=4),
            quantization=quantization,
            draft=as_loaded(head, drafted, rules.plan),
            device=device_of(catalog.gpu("h200"), rules),
        ).by_component["draft"]
        for drafted in (1, 3)
    )

    assert three == times * one
