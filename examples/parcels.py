"""A service that tracks two parcels; once the file CHANGED exists it answers in another shape.

python examples/parcels.py CHANGED
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PARCELS = {"PX200": ("delivered", "Rennes hub", 0.8), "PX201": ("in transit", "Metz depot", 12.5)}


class Tracking(BaseHTTPRequestHandler):
    """Answers GET /v1/parcels/NUMBER."""

    def do_GET(self) -> None:
        """Answer with a parcel, or with 404."""
        number = self.path.rpartition("/")[2]
        found = PARCELS.get(number)
        data = json.dumps(reply(number, *found) if found else {"error": "no such parcel"}).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_told: object) -> None:
        """Say nothing."""


def reply(number: str, status: str, place: str, weight: float) -> dict[str, object]:
    """Return a parcel in the shape of the day."""
    if Path(sys.argv[1]).exists():
        return {"number": number, "state": {"status": status, "place": place}, "weight_kg": weight}
    return {"number": number, "status": status, "place": place, "weight_kg": weight}


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Tracking)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
