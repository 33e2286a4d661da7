"""Tests of the connection of a client."""

import ssl

import httpcore2
import pytest

from controlplane.client.connection import connect
from controlplane.client.retail import RetailClient

KEYS = {"VENUE_CONTROL_API_KEY": "vck_" + "x" * 43}


@pytest.mark.parametrize(
    ("url", "read_count"), [("http://127.0.0.1:1", 0), ("https://127.0.0.1:1", 2)]
)
def test_trusted_certificates_are_read_for_https_only(
    monkeypatch: pytest.MonkeyPatch, url: str, read_count: int
) -> None:
    contexts: list[ssl.SSLContext] = []

    def read(**_options: bool) -> ssl.SSLContext:
        contexts.append(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        return contexts[-1]

    monkeypatch.setattr(httpcore2, "default_ssl_context", read)
    with connect(url, None, KEYS), RetailClient(url, "key"):
        pass
    assert len(contexts) == read_count
    assert all(context.verify_mode == ssl.CERT_REQUIRED for context in contexts)
