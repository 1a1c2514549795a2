"""CLIP's large tower against the total its model card prints (huggingface.co/openai/clip-vit-large-patch14)."""

from service.engine.families.parts.clip import clip_large


def test_the_large_tower_has_its_published_303_million_parameters() -> None:
    """`safetensors` of the vision model: 303,179,776, of which its last norm, left out here, has 2 x 1,024."""
    split, whole = clip_large(side=16, layers=24)

    assert split + whole == 303_179_776 - 2 * 1_024
