"""The import of Ollama's client leaves the environment as it was."""

from __future__ import annotations

import os

import pytest

from batos.inference.ollama.client import bare_environment


def test_what_misleads_is_hidden_within_and_back_after(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies and certificates of the environment are not seen by the import, and are as they were after it."""
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
    monkeypatch.setenv("SSL_CERT_FILE", "/etc/mine.pem")
    monkeypatch.setenv("SSL_CERT_DIR", "/etc/mine")
    before = dict(os.environ)
    with bare_environment():
        assert not {"ALL_PROXY", "SSL_CERT_FILE"} & os.environ.keys()
        assert os.environ["SSL_CERT_DIR"] == os.devnull
    assert dict(os.environ) == before


def test_what_was_not_set_is_not_set_after(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder without certificates is named to the import alone."""
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    with bare_environment():
        pass
    assert "SSL_CERT_DIR" not in os.environ
