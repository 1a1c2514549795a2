"""An OpenID provider on this machine, with keys of its own: it publishes them, and signs what a test wants."""

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

RSA_KEY = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
STRANGER = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
SECRET = b"a secret that somebody published by mistake"


class Provider:
    """What is published, and how often somebody asked."""

    def __init__(self) -> None:
        rsa_jwk = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(RSA_KEY.public_key()))
        ec_jwk = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(EC_KEY.public_key()))
        self.url, self.asked, self.is_away = "", 0, False
        self.keys: list[dict[str, Any]] = [
            {**rsa_jwk, "kid": "one", "use": "sig", "alg": "RS256"},
            {**ec_jwk, "kid": "two", "use": "sig"},
            {"kty": "oct", "kid": "three", "k": encoded(SECRET)},
            {**rsa_jwk, "kid": "sealing", "use": "enc"},
        ]

    def answer(self, path: str) -> dict[str, Any] | None:
        self.asked += 1
        if self.is_away:
            return None
        documents: dict[str, dict[str, Any]] = {
            "/.well-known/openid-configuration": {"issuer": self.url, "jwks_uri": f"{self.url}/keys"},
            "/keys": {"keys": self.keys},
        }
        return documents.get(path)

    def token(self, scope: Any = "sizer:read", key: Any = RSA_KEY, kid: str | None = "one", **changes: Any) -> str:
        """Return a signed token; a claim that is None is left out."""
        algorithm = changes.pop("alg", "ES256" if key is EC_KEY else "RS256")
        claims = {
            "iss": self.url, "aud": "sizer", "sub": "somebody", "exp": time.time() + 600, "scope": scope, **changes,
        }  # fmt: skip
        kept = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(kept, key, algorithm=algorithm, headers={"kid": kid} if kid else {})

    def mixed_up(self) -> str:
        """Return a token whose shared secret is the public key: what a careless reader takes for its signature."""
        public = RSA_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        return self.shared(public, "one")

    def shared(self, secret: bytes, kid: str) -> str:
        """Return a token signed by a shared secret."""
        head = encoded(json.dumps({"alg": "HS256", "typ": "JWT", "kid": kid}).encode())
        claims = {"iss": self.url, "aud": "sizer", "sub": "x", "exp": time.time() + 600, "scope": "sizer:admin"}
        signed = f"{head}.{encoded(json.dumps(claims).encode())}"
        return f"{signed}.{encoded(hmac.new(secret, signed.encode(), hashlib.sha256).digest())}"


def encoded(text: bytes) -> str:
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


@contextmanager
def provided() -> Iterator[Provider]:
    """Serve a provider inside the block."""
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            document = provider.answer(self.path)
            body = json.dumps(document or {}).encode()
            self.send_response(503 if document is None else 200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    provider.url = f"http://127.0.0.1:{server.server_port}"
    yield provider
    server.shutdown()
    server.server_close()
