"""The settings of the HTTP door."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field


class DoorSettings(BaseModel):
    """Holds the address of the HTTP door, whom it lets in, and what it does for clients of other servers."""

    http: str = Field(
        default="127.0.0.1:7719",
        description="Address of HTTP: of `serve`; of a server that a verb started only if it is set; `off`: none.",
    )
    http_hosts: str = Field(
        default="", description="Further names by which HTTP may be reached, as `mind.home.arpa`; commas between."
    )
    http_origins: str = Field(
        default="", description="Origins of pages that may ask over HTTP, as `http://localhost:3000`; commas between."
    )
    http_cert: str = Field(default="", description="File of the certificate; beyond loopback HTTP needs one.")
    http_key: str = Field(default="", description="File of the certificate's key.")
    http_proxy: Literal["none", "tls"] = Field(
        default="none",
        description="`tls`: only a proxy with TLS, or a port that a container publishes on loopback, reaches HTTP.",
    )
    http_answers: Literal["live", "checked"] = Field(
        default="live",
        description="Clients of HTTP get words as they come, and a correction below them; or what the gate has passed.",
    )
    on_disconnect: Literal["cancel", "finish"] = Field(
        default="cancel", description="The end of a mission whose client of `/v1` or `/api` has left."
    )
    client_tools: Literal["auto", "ignore"] = Field(
        default="auto",
        description="Tools that a client of HTTP sends: a mission may end with a call of one, for it to make; or none.",
    )
    chores: Literal["reflex", "refuse", "mission"] = Field(
        default="reflex",
        description="Titles, tags and the like that clients ask for: one call without memory, none, or as a question.",
    )
