"""A node that has an image on a server, and on a line from its parent tries to commit."""

from __future__ import annotations

import asyncio
import sys

from tests.fork_server import log_to_stderr
from tests.image.open_image import answer, brief, open_image, say, thought_in


async def main(seconds: float, image_uri: str, journal: str) -> None:
    """Say when it has the image, with a mission that is thought; then what each try comes to, by each writer."""
    async with open_image(None, image=image_uri, journal=journal, lease=seconds, node="the sleeper") as image:
        mission = await image.accept(brief())
        await image.move(mission, "running")
        with image.transaction(mission) as thinking:
            thought = answer(thought_in(image, thinking, mission), "From the sleeper.")
            say(mission)
            await asyncio.to_thread(sys.stdin.readline)
            for writing in (thinking.commit(thought), image.accept(brief()), image.move(mission, "failed")):
                try:
                    await writing
                except Exception as error:  # told to the parent
                    say("refused", type(error).__name__)
                else:
                    say("written")


if __name__ == "__main__":
    log_to_stderr()
    asyncio.run(main(float(sys.argv[1]), *sys.argv[2:]))
