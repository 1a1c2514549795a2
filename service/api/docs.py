"""Interactive documentation, served from the package's own files: no CDN."""

from fastapi import FastAPI
from fastapi_swagger import patch_fastapi


def install_docs(app: FastAPI) -> None:
    """Serve /docs; the root leads there."""
    patch_fastapi(app, docs_url="/docs", title="Sizer")
