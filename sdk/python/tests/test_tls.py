"""TLS, client certificates and API keys."""

from __future__ import annotations

import subprocess
import threading

import pytest

import kagzi
from kagzi.testing import Server, find_binary


@kagzi.workflow
async def echo(text: str) -> str:
    return await kagzi.do("s", lambda: text)


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    """A server with TLS and an administrator's key, and the folder of its certificates."""
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run([find_binary(), "tls", "init", "--dir", str(folder), "--host", "localhost", "--client", "ci"],
                   check=True, capture_output=True)
    server = Server(options=["--tls-cert", str(folder / "server.crt"), "--tls-key", str(folder / "server.key"),
                             "--client-ca", str(folder / "ca.crt")])
    address = server.address.replace("127.0.0.1", "localhost")

    def key(name: str, *options: str, secret: str = "") -> str:
        made = subprocess.run([find_binary(), "key", "create", name, "-y", "--address", address, "--tls-ca",
                               str(folder / "ca.crt"), *options, *(["--api-key", secret] if secret else [])],
                              capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr
        return made.stdout.strip()

    admin = key("root", "--role", "admin")
    yield address, folder, admin, key
    server.close()


def test_workers_and_clients_use_tls_and_a_key(secured):
    address, folder, admin, key = secured
    tls = kagzi.TLS(ca=str(folder / "ca.crt"))
    works = key("w", "--role", "worker", "-n", "default", "--queue", "default", secret=admin)
    starts = key("c", "--role", "client", "-n", "default", secret=admin)
    worker = kagzi.Worker(echo, profile="off", address=address, tls=tls, api_key=works, handle_signals=False)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        assert worker.ready.wait(20)
        with kagzi.Client(profile="off", address=address, tls=tls, api_key=starts) as c:
            assert c.start(echo, "x").result(20) == "x"
    finally:
        worker.stop()
        thread.join(20)


def test_a_process_that_beats_uses_them_too(secured):
    address, folder, admin, key = secured
    works = key("w2", "--role", "worker", "-n", "default", secret=admin)
    worker = kagzi.Worker(echo, profile="off", address=address, tls=kagzi.TLS(ca=str(folder / "ca.crt")), api_key=works,
                          handle_signals=False, heartbeat="process")
    thread = threading.Thread(target=worker.run)
    thread.start()
    assert worker.ready.wait(20)
    worker.stop()
    thread.join(20)
    assert not thread.is_alive()


def test_refusals_say_what_is_missing(secured):
    address, folder, admin, key = secured
    tls = kagzi.TLS(ca=str(folder / "ca.crt"))
    with kagzi.Client(profile="off", address=address, tls=tls) as c, pytest.raises(kagzi.Unauthorized):
        c.start(echo, "x")
    reads = key("v", "--role", "viewer", "-n", "default", secret=admin)
    with kagzi.Client(profile="off", address=address, tls=tls, api_key=reads) as c, pytest.raises(kagzi.Unauthorized):
        c.start(echo, "x")
    with pytest.raises(kagzi.Unauthorized, match="the worker has no API key: set api_key, KAGZI_API_KEY_FILE"):
        kagzi.Worker(echo, profile="off", address=address, tls=tls, handle_signals=False).run()
    with kagzi.Client(profile="off", address=address, tls=True, api_key=admin) as c, pytest.raises(kagzi.Unavailable):
        c.get("01a22221-0db9-716c-8af6-4572c1433311")  # a CA that is not trusted


def test_a_client_certificate_is_a_key(secured):
    address, folder, admin, key = secured
    key("ci", "--role", "client", "-n", "default", secret=admin)
    tls = kagzi.TLS(ca=str(folder / "ca.crt"), client_cert=str(folder / "client-ci.crt"),
                    client_key=str(folder / "client-ci.key"))
    with kagzi.Client(profile="off", address=address, tls=tls) as c:
        assert c.start(echo, "x").id
    with pytest.raises(kagzi.ConfigError, match="go together"):
        kagzi.Client(profile="off", address=address, tls=kagzi.TLS(client_cert=str(folder / "client-ci.crt")))


def test_a_key_is_not_sent_without_encryption():
    with pytest.raises(kagzi.ConfigError, match="an API key is not sent to 'kagzi.example:50051' without encryption"):
        kagzi.Client(profile="off", address="kagzi.example:50051", api_key="kz_secret")
