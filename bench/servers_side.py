"""Real database servers for benches: the same that the tests start."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

_servers = import_module("tests.image.servers")
zeo_server = _servers.zeo_server
postgres_server = _servers.postgres_server
ask_postgres = _servers.ask_postgres
