"""The service's settings: the only reader of the environment."""

import os
import re
from difflib import get_close_matches
from pathlib import Path
from typing import Final, Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

# Of two keys each: what a provider publishes must not be what signs.
TokenAlgorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
DATABASES: Final = ("sqlite://", "postgresql+psycopg://")
WEB_ADDRESS: Final = re.compile(r"https?://[^/?#\s]+")
PREFIX: Final = "SIZER_"
CLOSE: Final = 0.8  # of the letters of two names
OF_COMMANDS: Final = ("SIZER_SERVER", "SIZER_KEY")  # options that may be stated so
OF_KUBERNETES: Final = ("SIZER_SERVICE_", "SIZER_PORT")  # what it tells every pod of a service called sizer


class Settings(BaseSettings):
    """Every setting, read once; variables are named SIZER_<FIELD>."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore")

    database_url: str = Field(
        default="sqlite:///var/sizer.sqlite3",
        description="SQLAlchemy URL; postgresql+psycopg://user:password@host/name for more than one replica",
    )
    api_keys: SecretStr = Field(
        default=SecretStr(""), description="comma-separated keys that may write to the catalog; none: nobody may"
    )
    reads_need_key: bool = Field(default=False, description="whether asking needs a key of scope read as well")
    key_requests_per_s: float | None = Field(
        default=None, gt=0, le=1e6, description="how often one key may ask, with two seconds of it at once; none: any"
    )
    snapshot_path: Path = Field(
        default=Path("var/snapshot.json"), description="last good catalog, kept for a dead database"
    )
    snapshot_poll_seconds: float = Field(default=5.0, gt=0, description="how often the catalog revision is looked up")
    tables_path: Path | None = Field(
        default=Path("var/tables"), description="step times built from measured kernels; none: kept in memory alone"
    )
    builds_ahead: bool = Field(
        default=True,
        description="whether step times of popular models are built, and workloads answered, before anybody asks",
    )
    write_seconds: float = Field(
        default=2.0, ge=1, le=60, description="within which a write to the catalog is made, or refused with 503"
    )
    question_seconds: float = Field(
        default=30.0, ge=1, le=600, description="within which a question is answered, or refused with 503"
    )
    json_log: bool = Field(
        default=False, description="a line of JSON for each request: id, route, status, time, caller"
    )
    access_log: bool = Field(default=False, description="a line for each request; proxies write one as well")
    shutdown_seconds: int = Field(
        default=25, ge=1, le=600, description="for how long a service that was told to end answers what it began"
    )
    hub_url: str = Field(default="https://huggingface.co", description="where models are imported from, or a mirror")
    hub_allowed_hosts: str = Field(
        default="huggingface.co", description="comma-separated hosts that an import may talk to"
    )
    hub_timeout_seconds: float = Field(default=10.0, gt=0, le=120, description="for how long the hub may be silent")
    hub_deadline_seconds: float = Field(default=30.0, gt=0, le=600, description="how long a whole import may take")
    prometheus_urls: str = Field(
        default="",
        description="comma-separated addresses that workloads may read their load from; none: no load is read",
    )
    private_addresses: bool = Field(
        default=False,
        description="whether a Prometheus, or who issues tokens, may be in a private network, and then over plain http",
    )
    oidc_issuer: str = Field(default="", description="OpenID provider whose tokens are taken as keys; none: nobody's")
    oidc_audience: str = Field(default="sizer", min_length=1, description="what tokens must be for")
    oidc_jwks_url: str = Field(default="", description="where its keys are; none: as its discovery document says")
    oidc_algorithms: tuple[TokenAlgorithm, ...] = Field(
        default=("RS256", "ES256"), min_length=1, description="JSON list of how tokens may be signed"
    )
    oidc_scope_claim: str = Field(default="scope", min_length=1, description="claim that lists a token's scopes")
    oidc_scope_prefix: str = Field(default="sizer:", description="before read, write and admin in that claim")
    oidc_leeway_seconds: float = Field(default=30.0, ge=0, le=300, description="by how much clocks may differ")
    otlp_endpoint: str = Field(
        default="",
        description="collector that is told of requests, as http://collector:4318/v1/traces; none: nobody",
    )
    public_url: str = Field(
        default="", description="where callers reach this service, for the contract it shows; none: where it is shown"
    )
    # A published config of 2.4 MB names every module that it leaves in 16 bits (nvidia/MiniMax-M3-NVFP4).
    max_body_bytes: int = Field(default=5_242_880, gt=0, description="largest request body that is read")

    @field_validator("database_url")
    @classmethod
    def _known_database(cls, url: str) -> str:
        if not url.startswith(DATABASES):
            raise ValueError(f"should begin with {' or '.join(DATABASES)}")
        try:
            make_url(url)
        except (ArgumentError, ValueError):
            raise ValueError("should be sqlite:///file or postgresql+psycopg://user:password@host:port/name") from None
        return url

    @field_validator("tables_path", "key_requests_per_s", mode="before")
    @classmethod
    def _none_where_empty(cls, stated: object) -> object:
        return None if stated == "" else stated

    @field_validator("snapshot_path", mode="before")
    @classmethod
    def _named(cls, stated: object) -> object:
        if stated == "":
            raise ValueError("should name a file")
        return stated

    @field_validator("hub_url", "prometheus_urls", "oidc_issuer", "oidc_jwks_url", "otlp_endpoint", "public_url")
    @classmethod
    def _web_addresses(cls, stated: str) -> str:
        if any(not WEB_ADDRESS.match(url.strip()) for url in stated.split(",") if url.strip()):
            raise ValueError("should be an address that begins with http:// or https:// and names a host")
        return stated

    def accepted_keys(self) -> tuple[str, ...]:
        """Return the API keys, without blanks."""
        return tuple(key.strip() for key in self.api_keys.get_secret_value().split(",") if key.strip())

    def allowed_prometheus(self) -> frozenset[str]:
        """Return the addresses that workloads may read their load from."""
        return frozenset(url.strip().rstrip("/") for url in self.prometheus_urls.split(",") if url.strip())

    def allowed_hosts(self) -> frozenset[str]:
        """Return the hosts that an import may talk to."""
        return frozenset(host.strip().lower() for host in self.hub_allowed_hosts.split(",") if host.strip())


def unknown_settings() -> tuple[str, ...]:
    """Return what the environment states that is no setting, with the one that may be meant; no values."""
    known = [f"{PREFIX}{name.upper()}" for name in Settings.model_fields]
    stated = (
        name for name in os.environ if name.upper().startswith(PREFIX) and name.upper() not in (*known, *OF_COMMANDS)
    )
    told = []
    for name in sorted(name for name in stated if not name.startswith(OF_KUBERNETES)):
        close = get_close_matches(name.upper(), known, 1, CLOSE)
        told.append(f"{name} is no setting{f'; {close[0]} is' if close else ''}")
    return tuple(told)
