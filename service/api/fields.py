"""Which fields a request may state: those of its question, or else those of its route."""

from collections.abc import Mapping

from fastapi import Request
from fastapi.routing import APIRoute
from pydantic import BaseModel

from service.questions.asked import Question
from service.questions.fields import lists_of, names_of
from service.questions.misnamed import LOOKED_UP


def known_fields(request: Request) -> tuple[str, ...]:
    """Return the names that the path's question reads in a body, or that its route reads."""
    questions: Mapping[str, Question] = request.app.state.questions
    question = questions.get(request.url.path.removeprefix("/"))
    return question.fields if question else tuple(name for model in _read_by(request) for name in names_of(model))


def stated_names(request: Request, body: object) -> dict[str, object]:
    """Return what a question states of fields that name something, in its body or in its query string."""
    if request.url.path.removeprefix("/") not in request.app.state.questions:
        return {}
    if isinstance(body, dict):
        return {name: body[name] for name in LOOKED_UP if name in body}
    stated = request.query_params
    return {
        name: ",".join(stated.getlist(name)) if name.endswith("s") else stated[name]
        for name in LOOKED_UP
        if name in stated
    }


def repeatable_fields(request: Request) -> frozenset[str]:
    """Return the names that may be stated more than once in a query string."""
    return frozenset(name for model in _read_by(request) for name in lists_of(model))


def _read_by(request: Request) -> tuple[type[BaseModel], ...]:
    """Return the models that a route reads from query string and body."""
    route = request.scope.get("route")
    if not isinstance(route, APIRoute):
        return ()
    read = (info.field_info.annotation for info in (*route.dependant.query_params, *route.dependant.body_params))
    return tuple(model for model in read if isinstance(model, type) and issubclass(model, BaseModel))
