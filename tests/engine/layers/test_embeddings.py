"""Tables of a vocabulary."""

import pytest

from service.engine.layers import PerLayerEmbeddings, vocabulary_rows

# huggingface.co/google/gemma-3n-E4B config.json: 35 layers of 256 for 262,144 tokens; 2,048 wide.
GEMMA_3N = PerLayerEmbeddings(vocab_size=262_144, width=256)


@pytest.mark.parametrize(("vocab", "tp", "rows"), [(128_256, 1, 128_256), (128_256, 8, 16_032), (50_257, 1, 50_304)])
def test_tables_are_padded_and_dealt_out(vocab: int, tp: int, rows: int) -> None:
    assert vocabulary_rows(vocab, tp) == rows


def test_gemma_3n_s_second_table_is_a_third_of_the_model() -> None:
    # ai.google.dev/gemma/docs/gemma-3n: about 8 billion parameters are loaded, 4 of them outside the accelerator.
    table = GEMMA_3N.model_matrices(2_048, 35, 1)[0]

    assert round(table.elements / 1e9, 2) == 2.35


def test_each_layer_takes_its_embedding_in_on_every_rank() -> None:
    gate, projection, norm = GEMMA_3N.layer_matrices(2_048, "model.layers.0.")

    assert gate.elements == projection.elements == 256 * 2_048
    assert norm.elements == 2_048
