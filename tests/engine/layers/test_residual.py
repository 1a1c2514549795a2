"""Copies of the residual stream, and connections that mix several."""

from service.engine.layers import AlternatingUpdates, GatedConnections, hyper_connections, stream_joiner

GEMMA_3N = AlternatingUpdates(num_streams=4, residual_rank=64)  # huggingface.co/google/gemma-3n-E4B config.json


def test_a_layer_of_gemma_3n_predicts_and_corrects_four_streams() -> None:
    # arXiv:2301.13310: 4 x 4 predictions from 4 modalities, 4 corrections, a router of 4 x 2,048, and norms.
    coefficients = GEMMA_3N.layer_matrices(2_048, 1, "")[0]

    assert coefficients.elements == 4 * 4 * 4 + 4 * 4 + 4 * 2_048 + 2_048


def test_low_rank_residuals_are_split_and_the_projections_between_streams_are_too() -> None:
    left, right = GEMMA_3N.layer_matrices(2_048, 4, "")[2:4]
    (projections,) = GEMMA_3N.model_matrices(2_048, 4)

    assert (left.rows, right.columns) == (16, 16)
    assert projections.elements == 6 * 2_048 * 512


def test_hyper_connections_are_fp32_and_only_where_streams_are() -> None:
    four = hyper_connections(4, 4_096, "", mixes_streams=True)

    # 4 in, 4 out and 4 x 4 between, of a state of 4 x 4,096, with as many biases and 3 scales, for both parts.
    assert (four.elements, four.element_bytes) == (2 * (24 * 4 * 4_096 + 24 + 3), 4)
    assert hyper_connections(1, 4_096, "", mixes_streams=True).elements == 0
    assert stream_joiner(1, 4_096, "model.hc_head").elements == 0


def test_gated_connections_are_two_low_rank_products_and_a_norm_before_each_part() -> None:
    # vLLM 0.33 `models/qwen4_exp/nvidia/hyperconnection.py`, Qwen3.8-Flash-Next: 320 + 4 rows, padded to 336.
    gated = GatedConnections(num_streams=4, rank=320)
    layer, joining = gated.layer_matrices(2_560, "model.layers.0."), gated.joining_matrices(2_560, "model.hc_head")

    assert sum(it.elements for it in layer) == 2 * (336 * 10_240 + 10_240 * 320 + 10_240)
    assert sum(it.elements for it in joining) == 320 * 10_240 + 10_240 * 320 + 10_240
    assert not any(it.is_linear and not it.is_kept for it in (*layer, *joining))
