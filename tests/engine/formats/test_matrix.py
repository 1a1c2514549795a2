"""What a matrix says of itself."""

from service.engine.formats.matrix import LATENT_CACHE_SCALES, Matrix, cache_scales, single, vector


def test_elements_are_counted_with_copies_and_biases() -> None:
    # gpt-oss-120b (huggingface.co/openai/gpt-oss-120b): 128 experts of 2 x 2,880 rows and columns, with biases.
    up = Matrix(module="model.layers.0.mlp.experts.gate_up_proj", rows=5_760, columns=2_880, count=128, biases=5_760)

    assert up.elements == 128 * (5_760 * 2_880 + 5_760)
    assert up.name == "gate_up_proj"


def test_vectors_are_never_quantized() -> None:
    norm, correction = vector("model.norm", 4_096), single("gate.e_score_correction_bias", 256)

    assert (norm.elements, norm.is_linear, norm.element_bytes) == (4_096, False, None)
    assert (correction.elements, correction.is_linear, correction.element_bytes) == (256, False, 4)


def test_a_cache_has_one_scale_for_keys_and_one_for_values() -> None:
    assert cache_scales("attn.").elements == 2
    assert cache_scales("attn.", LATENT_CACHE_SCALES).name == LATENT_CACHE_SCALES
