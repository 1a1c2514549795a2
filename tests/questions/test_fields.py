"""Names of fields as callers write them, and which of them are lists."""

from typing import Annotated

from pydantic import BaseModel, Field

from service.questions.fields import is_list, lists_of, names_of
from service.questions.recommend import RecommendBody
from service.questions.size import SizeBody


class Model(BaseModel):
    one: Annotated[list[str], Field(max_length=3)] | None = None
    two: str = Field(default="", alias="second")


def test_names_are_those_of_the_contract() -> None:
    assert names_of(Model) == ("one", "second")
    assert "model_config" in names_of(SizeBody)
    assert "pasted_config" not in names_of(SizeBody)


def test_lists_are_known_under_whatever_wraps_them() -> None:
    assert lists_of(Model) == {"one"}
    assert is_list(list[int])
    assert not is_list(str | None)


def test_every_question_lists_offers_and_only_a_recommendation_gpus_and_formats() -> None:
    of_offers = {"providers", "regions", "tiers", "purchases"}

    assert lists_of(RecommendBody) == of_offers | {
        "gpus", "exclude_gpus", "product_lines", "weight_formats", "kv_cache_dtypes",
    }  # fmt: skip
    assert lists_of(SizeBody) == of_offers
