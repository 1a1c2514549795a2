"""Interactive documentation, served from a package's own files: no CDN."""

from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import HTMLResponse, RedirectResponse
from starlette.staticfiles import StaticFiles

from service.api.headers import page_policy


def install_docs(app: FastAPI) -> None:
    """Serve /docs; the root leads there."""
    # The package brings Swagger UI's files; its own routes read them in a way Python deprecates.
    app.mount("/docs/assets", StaticFiles(packages=[("fastapi_swagger", "resources")]), name="docs-assets")
    page = bytes(
        get_swagger_ui_html(
            openapi_url="openapi.json",
            title="Sizer",
            swagger_js_url="docs/assets/swagger-ui-bundle.js",
            swagger_css_url="docs/assets/swagger-ui.css",
            swagger_favicon_url="docs/assets/favicon-32x32.png",
        ).body
    )
    headers = {"Content-Security-Policy": page_policy(page.decode())}

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(page, headers=headers)

    @app.get("/", include_in_schema=False)
    async def root() -> RedirectResponse:
        return RedirectResponse("docs")
