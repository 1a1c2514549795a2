"""Which language model a multimodal class wraps."""

from collections.abc import Mapping

from service.engine.config_reader import is_list, text_reader, unknown_kind
from service.engine.families.parts.family import LanguageModels, WrapRule


def always(name: str) -> WrapRule:
    """Return the rule of one language model inside."""

    def rule(_config: Mapping[str, object], _known: LanguageModels) -> str:
        return name

    return rule


def named_inside(config: Mapping[str, object], known: LanguageModels) -> str:
    """Return the class that the inner config names: itself, or by its model type.

    Raises:
        UnsupportedModelError: `text_config` names a model type without a rule.
    """
    inner = text_reader(config)
    named = inner.own("architectures")
    if is_list(named) and named and known.has_class(str(named[0])):
        return str(named[0])
    kind = str(inner.own("model_type") or "")
    if kind not in known.model_types:
        raise unknown_kind("text_config.model_type", kind, ", ".join(sorted(known.model_types)))
    return known.model_types[kind]
