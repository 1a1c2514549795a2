"""Beam, as transformers builds it without memory."""

from service.engine import parse_architecture
from service.engine.memory.parameters import num_parameters


def test_beam_adds_up_as_built_but_for_what_the_engine_keeps_as_parameters() -> None:
    """transformers 5.24 `BeamForCausalLM` of its config class: 501,267,599,808, a router's correction being no parameter.

    Source: vLLM 0.33 `models/beam/nvidia/moe.py` (`e_score_correction_bias`).
    """
    kinds = ["sliding_attention"] * 5 + ["full_attention"]
    config = {
        "architectures": ["BeamForCausalLM"], "vocab_size": 151936, "hidden_size": 5120, "intermediate_size": 20480,
        "num_hidden_layers": 52, "num_attention_heads": 48, "num_key_value_heads": 8, "head_dim": 128,
        "sliding_window": 512, "moe_intermediate_size": 2560, "num_experts_per_tok": 8, "num_experts": 256,
        "max_position_embeddings": 8192, "tie_word_embeddings": False, "n_group": 8, "topk_group": 4,
        "layer_types": kinds * 8 + ["sliding_attention"] * 3 + ["full_attention"],
        "mlp_layer_types": ["dense"] * 3 + ["sparse"] * 49,
        "rope_parameters": {"sliding_attention": {"rope_type": "default", "rope_theta": 1e4}, "full_attention": None},
    }  # fmt: skip

    assert num_parameters(parse_architecture(config)) == 501_267_599_808 + 49 * 256
