"""The model a question is about: named, or pasted as a config."""

from typing import Any

from pydantic import Field, ValidationInfo, field_validator

from service.engine.facts import ModelFacts
from service.engine.inputs import WeightFormat
from service.questions.parts.part import Part, absent, contradiction
from service.questions.refusals import Fault, RefusalError
from service.questions.sources import Sources
from service.questions.values import Bytes, Text

ACCEPTED = "model (an id from /catalog/models), or model_config (a config.json, POST only)"


class NamedModel(Part):
    """A model of the catalog."""

    model: Text | None = Field(
        default=None,
        validate_default=True,
        description="catalog id, Hugging Face id or page of any checkpoint, alias, or plain words; what is not literal "
        "stands in assumptions",
        examples=["llama-3.3-70b"],
    )

    @field_validator("model")
    @classmethod
    def _some_model(cls, value: str | None) -> str | None:
        if value is None:
            raise contradiction("model", "neither model nor model_config was stated", ACCEPTED)
        return value

    def model_facts(self, sources: Sources) -> ModelFacts:
        """Return the model to compute with.

        Raises:
            RefusalError: the catalog has no such model, or its name says another format than the one stated.
            EngineError: the model has a structure without a rule.
        """
        return sources.model(self.model or "", field="model", weight_formats=self._stated_formats())

    def _stated_formats(self) -> tuple[WeightFormat, ...]:
        """Return the formats stated beside the name, in questions that take any."""
        one: WeightFormat | None = getattr(self, "weight_format", None)
        several: list[WeightFormat] = getattr(self, "weight_formats", None) or []
        return (*([one] if one else []), *several)


class PastedModel(NamedModel):
    """A model of the catalog, or one that is not in it, in POST bodies only."""

    pasted_config: dict[str, Any] | None = Field(
        default=None,
        alias="model_config",
        validate_default=True,
        description="a Hugging Face config.json, instead of model",
    )
    weight_bytes: Bytes | None = Field(
        default=None,
        description="bytes of all weights, where the config cannot tell [bytes]",
        examples=[16_060_522_496],
    )
    num_parameters: Bytes | None = Field(
        default=None, description="parameters, where the config cannot tell [count]", examples=[8_030_261_248]
    )

    @field_validator("model")
    @classmethod
    def _some_model(cls, value: str | None) -> str | None:
        """Replace the rule of the same name: a config may stand for the name."""
        return value

    @field_validator("pasted_config")
    @classmethod
    def _model_or_config(cls, value: dict[str, Any] | None, info: ValidationInfo) -> dict[str, Any] | None:
        if value is None and absent(info, "model"):
            raise contradiction("model", "neither model nor model_config was stated", ACCEPTED)
        return value

    def model_facts(self, sources: Sources) -> ModelFacts:
        """Return the model to compute with: pasted, or of the catalog.

        Raises:
            RefusalError: two models were stated, or weights of a model that the catalog knows; or it has no such model.
            EngineError: the model has a structure without a rule, or the config lacks a field.
        """
        if self.pasted_config is None:
            if self.weight_bytes or self.num_parameters:
                detail = (
                    "weight_bytes and num_parameters go with a pasted model_config; the catalog knows its own models"
                )
                stated = "weight_bytes" if self.weight_bytes else "num_parameters"
                raise RefusalError("invalid-request", detail, Fault(stated, detail, "model_config"))
            return super().model_facts(sources)
        if self.model is not None:
            detail = "model and model_config were both stated"
            raise RefusalError("invalid-request", detail, Fault("model", detail, ACCEPTED))
        return sources.pasted_model(self.pasted_config, self.weight_bytes, self.num_parameters)
