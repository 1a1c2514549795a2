"""Answers with a tag of their bytes: whoever has them is told so, and may use them while this service is away."""

from hashlib import sha256
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

# RFC 9111 and RFC 5861: ask again each time; while the service fails, ten minutes old will do.
CACHE_CONTROL: Final = "no-cache, stale-if-error=600"


def tagged(request: Request, text: str, media_type: str) -> Response:
    """Return a text with its tag, or 304 to whoever names the tag."""
    content = text.encode()
    etag = f'"{sha256(content).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Cache-Control": CACHE_CONTROL}
    if etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=media_type, headers=headers)
