"""Answers with a tag of their bytes: whoever has them is told so, and may use them while this service is away."""

from collections.abc import Callable, Coroutine
from hashlib import sha256
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from service.api.media import JsonRoute

# RFC 9111 and RFC 5861: ask again each time; while the service fails, ten minutes old will do.
CACHE_CONTROL: Final = "no-cache, stale-if-error=600"
UNTAGGED: Final = frozenset({"/probe"})  # a probe is of its moment


class TaggedRoute(JsonRoute):
    """A route whose answers to GET have a tag: their own, or one of their bytes."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, which sends nothing to whoever has it."""
        handler, is_tagged = super().get_route_handler(), "GET" in (self.methods or ()) and self.path not in UNTAGGED

        async def handle(request: Request) -> Response:
            response = await handler(request)
            if not is_tagged or response.status_code != 200 or "cache-control" in response.headers:
                return response
            response.headers.setdefault("ETag", tag_of(bytes(response.body)))
            response.headers["Cache-Control"] = CACHE_CONTROL
            return _unless_known(request, response)

        return handle


def tagged(request: Request, text: str, media_type: str) -> Response:
    """Return an answer to a question, which Accept may have had a word in, or 304 to whoever names its tag."""
    content = text.encode()
    headers = {"ETag": tag_of(content), "Cache-Control": CACHE_CONTROL, "Vary": "Accept"}
    return _unless_known(request, Response(content, media_type=media_type, headers=headers))


def tag_of(content: bytes) -> str:
    """Return the tag of an answer's bytes."""
    return f'"{sha256(content).hexdigest()[:32]}"'


def _unless_known(request: Request, response: Response) -> Response:
    """Return a response, or 304 where the request names its tag (RFC 9110, section 13.1.2: weakly compared)."""
    tags = {tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")}
    if tags.isdisjoint({response.headers["etag"], "*"}):
        return response
    kept = {name: response.headers[name] for name in ("ETag", "Cache-Control", "Vary") if name in response.headers}
    return Response(status_code=304, headers=kept)
