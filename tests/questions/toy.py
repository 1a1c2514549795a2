"""A question of one file, as the next person would add one: how many words fit into some memory?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from service.engine.errors import InvalidQuestionError
from service.questions.answers import Answer, Row
from service.questions.asked import Asked, Question
from service.questions.parts.gpu import OnGpu
from service.questions.sources import Sources
from service.questions.values import WHOLE


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """How many words fit."""

    feasible: bool
    gpu: str
    words: int
    bytes_per_word: int


class ToyAnswer(Answer[Words]):
    """How many words fit into one GPU."""

    def rows(self) -> Sequence[Row]:
        return [self.document]

    def lines(self) -> Sequence[str]:
        return [f"{self.result.words} words on {self.result.gpu}"]


class ToyQuery(Asked, OnGpu):
    """How many words?"""

    bytes_per_word: Annotated[int, Field(ge=1), WHOLE] = Field(
        default=8, description="how long a word is [bytes]", examples=[8]
    )

    def answer(self, sources: Sources) -> ToyAnswer:
        gpu = self.gpu_facts(sources)
        if self.bytes_per_word == 13:
            raise InvalidQuestionError("no word is that long", field="bytes_per_word", accepted="any other length")
        words = gpu.memory_bytes // self.bytes_per_word
        result = Words(feasible=words > 0, gpu=gpu.id, words=words, bytes_per_word=self.bytes_per_word)
        return ToyAnswer(result, sources.catalog.revision)


class ToyBody(ToyQuery):
    """`ToyQuery`, as JSON."""


TOY = Question(
    name="words",
    summary="How many words fit?",
    description="Return how many words one GPU holds.",
    query=ToyQuery,
    body=ToyBody,
    answer=ToyAnswer,
    abridged={"feasible": True, "words": 3},
    examples={"by name": {"summary": "on H100", "value": {"gpu": "h100", "bytes_per_word": 16}}},
)
