"""What a test starts in place of `python -m batos`: it asks stem.py for a run, lends its streams, exits as that did.

`python -I -S asking.py ADDRESS ARGUMENTS...`; it imports next to nothing, which is its point.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys


def main(address: str, arguments: list[str]) -> int:
    """The exit status of the run; a run that a signal ended ends this process by that signal."""
    order = {"arguments": arguments, "environ": dict(os.environ), "folder": os.getcwd()}  # noqa: PTH109  # pathlib is dear
    body = json.dumps(order).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        socket.send_fds(connection, [struct.pack("!I", len(body))], [0, 1, 2])
        connection.sendall(body)
        answer = connection.recv(4)
    if len(answer) < 4:
        raise SystemExit("the process that runs verbs for tests ended")
    (status,) = struct.unpack("!i", answer)
    if status < 0:
        os.kill(os.getpid(), -status)
    return int(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
