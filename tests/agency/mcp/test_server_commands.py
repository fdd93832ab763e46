"""Commands of servers: launchers need one version, programs their whole path, and scripts keep their digest."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from batos.agency.mcp import server_commands
from batos.protocol.errors import BriefError, Refused

DIGEST = f"mcp/tides@sha256:{'a' * 64}"


@pytest.mark.parametrize(
    "command",
    [
        "npx -y tides", "npx tides@latest", "npx tides@1", "npx -p tides@1.2.3 -p other tides", "npm exec tides", "npx",
        "uvx tides", "uvx --from tides tides-mcp", "uvx tides==1.*", "uvx --with loose tides==1.2.3", "pipx run tides",
        "docker run -i --rm mcp/tides:latest", "podman run mcp/tides", "env A=b npx tides", "pnpm dlx tides",
        "uv tool run tides", "sh -c npx tides", "/usr/bin/npx tides@^1.2.3",
    ],
)  # fmt: skip
def test_a_launcher_without_one_version_is_refused(command: str) -> None:
    """With the form of a version."""
    with pytest.raises(Refused, match="in whatever version") as caught:
        server_commands.check_pinned(command.split())
    assert "Name one version" in caught.value.remedy


@pytest.mark.parametrize(
    "command",
    [
        "npx -y tides@1.2.3 --port 9", "npx --package=@a/tides@1.2.3-rc.1 tides", "uvx tides==1.2.3", "uvx tides@1.2.3",
        "uvx --python 3.12 --from tides[all]==1.2 tides-mcp", "pipx run --spec tides==1.2.3 tides",
        "uv tool run tides@1.0",
        f"docker run -i {DIGEST}", "python3 tides.py", "node npx-free.js",
    ],
)  # fmt: skip
def test_one_version_or_a_program_of_this_machine_is_taken(command: str) -> None:
    """Whatever it is given besides."""
    server_commands.check_pinned(command.split())


def test_a_command_is_kept_by_its_whole_path_with_the_digests_of_its_programs(tmp_path: Path) -> None:
    """A script counts, its data does not."""
    script, data = tmp_path / "tides.py", tmp_path / "tides.db"
    script.write_text("pass")
    data.write_text("rows")
    command = server_commands.resolve_command([sys.executable, str(script), str(data)])
    before = server_commands.digest_files(command)
    assert list(before) == [sys.executable, str(script)]
    data.write_text("other rows")
    assert server_commands.digest_files(command) == before
    script.write_text("print('another')")
    assert server_commands.digest_files(command) != before
    for wrong in ([], ["no-such-program"]):
        with pytest.raises(BriefError):
            server_commands.resolve_command(wrong)
