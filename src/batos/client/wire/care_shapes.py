"""The arguments of the verbs of the image's care: one strict model for each."""

from __future__ import annotations

from pydantic import Field

from batos.client.wire.strict_model import StrictModel


class PackArgs(StrictModel):
    """Take away states of image and journal that are older than the kept history."""

    keep_days: float | None = Field(
        default=None, ge=0, le=36_500, description="Days of history that stay; absent: those of the settings."
    )
