from __future__ import annotations

import gc
import logging

import pytest

from kagzi.testing import Env, Server

logging.getLogger("kagzi").setLevel(logging.INFO)


@pytest.fixture(autouse=True)
def _collect():
    """Nothing may be left to the collector: what it finds runs in a test of its own."""
    yield
    gc.collect()


@pytest.fixture(scope="session")
def real_server():
    """A server whose clock is the machine's, so that leases of dead workers end."""
    server = Server()
    yield server
    server.close()


@pytest.fixture
def leases(real_server):
    """An Env on it."""
    env = Env(real_server)
    yield env
    env.close()
