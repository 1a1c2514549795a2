"""What stands around the layers: tables, norms, towers, streams."""

from dataclasses import replace

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.inputs import Layout
from service.engine.layers import Architecture, DecoderLayer, DenseMlp, GroupedQueryAttention, NoAttention, NoMlp
from service.engine.memory.matrices import embedding_matrices, layer_matrices

ATTENTION = GroupedQueryAttention(num_attention_heads=8, num_key_value_heads=8, head_dim=64, v_head_dim=64)
DENSE = DenseMlp(intermediate_size=128)


def model(layer: DecoderLayer) -> Architecture:
    return Architecture(
        name="MadeUpForCausalLM",
        dtype="bfloat16",
        hidden_size=512,
        vocab_size=1_000,
        max_position_embeddings=1_024,
        default_max_model_len=1_024,
        layers=(layer,),
    )


BOTH = model(DecoderLayer(index=0, mixers=(ATTENTION,), mlp=DENSE))


def norms(architecture: Architecture) -> int:
    matrices = layer_matrices(architecture, architecture.layers[0], Layout())
    return next(it.elements for it in matrices if it.module == "model.layers.0.norms")


def test_each_part_has_a_norm_before_it_or_one_on_both_sides() -> None:
    assert norms(BOTH) == 2 * 512
    assert norms(replace(BOTH, norms_per_layer=4)) == 4 * 512
    assert norms(replace(BOTH, norms_per_layer=1)) == 512
    assert norms(replace(BOTH, norm_biases=True)) == 2 * 2 * 512
    assert norms(replace(BOTH, has_attention_residuals=True)) == (2 + 2 * 2) * 512


@pytest.mark.parametrize(
    ("mixer", "mlp", "parts"), [(NoAttention(), DENSE, 1), (ATTENTION, NoMlp(), 1), (NoAttention(), NoMlp(), 0)]
)
def test_what_is_not_there_has_no_norm(
    mixer: GroupedQueryAttention | NoAttention, mlp: DenseMlp | NoMlp, parts: int
) -> None:
    assert norms(model(DecoderLayer(index=0, mixers=(mixer,), mlp=mlp))) == parts * 512


def test_tied_embeddings_stand_on_both_ends_of_a_pipeline_only() -> None:
    tied = replace(BOTH, ties_embeddings=True)
    modules = [
        [it.module for it in embedding_matrices(tied, Layout(pipeline_parallel_size=stages))[1]] for stages in (1, 2)
    ]

    assert modules == [["model.norm"], ["model.norm", "model.embed_tokens"]]
    assert [it.module for it in embedding_matrices(BOTH, Layout())[1]][-1] == "lm_head"


def test_tables_are_padded_and_dealt_out() -> None:
    first, last = embedding_matrices(BOTH, Layout(tensor_parallel_size=2))

    assert first[0].rows == last[-1].rows == 1_024 // 2


def test_towers_and_second_tables_stand_on_the_first_stage(catalog: Snapshot) -> None:
    seeing = embedding_matrices(catalog.model("qwen2.5-vl-7b-instruct").architecture, Layout())[0]

    # huggingface.co/Qwen/Qwen2.5-VL-7B-Instruct: 676,550,144 of 8,292,166,656 parameters are the tower's.
    assert next(it.elements for it in seeing if it.module == "visual") == pytest.approx(676_550_144, rel=1e-3)
