"""The writer of what the publisher alone writes: it waits until this node is the publisher of its image."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from batos.image import roots
from batos.image.nodes.lease import HostIdentity, NodeLease, NotPublisher
from batos.image.roots import Root
from batos.image.writer import R, Writer
from batos.protocol.errors import InternalError

T = TypeVar("T")

#: Seconds between two questions whether this node is the publisher now.
_PAUSE: Final = 0.05
#: Times that a change is made again because another node had become the publisher meanwhile.
_ATTEMPTS: Final = 10


class Publishing:
    """The part of the publisher, for one process; without a lease the process has the image for itself."""

    def __init__(self, lease: NodeLease | None) -> None:
        self._lease = lease

    @property
    def is_here(self) -> bool:
        """Test if this node is the publisher, as far as it knows."""
        return self._lease is None or self._lease.publishes

    def check(self) -> bool:
        """Test if this node is the publisher. Raises: ImageError: it has lost its lease."""
        if self._lease is not None and self._lease.lost is not None:
            raise self._lease.lost
        return self.is_here

    @property
    def host(self) -> HostIdentity | None:
        """Return the machine of this node; None: no other can have the image."""
        return None if self._lease is None else self._lease.host

    def is_near(self, root: Root) -> bool:
        """Test if a node of this machine is the publisher."""
        if self._lease is None:
            return True
        publisher = root[roots.NODES].get(root[roots.PUBLISHER]["fence"])
        return publisher is not None and publisher.get("machine") == self._lease.host.id

    async def refresh(self) -> None:
        """Look again who publishes, and ask for the part if it is another node."""
        if self._lease is not None:
            await asyncio.to_thread(self._lease.try_publish)

    def check_fresh(self) -> None:
        """Check that no other node can have taken this one's part by now. Raises: ImageError: one may have."""
        if self._lease is not None:
            self._lease.check_fresh()

    async def give_way(self) -> None:
        """Let another node have the part that asked for it; for what takes it again and again without a pause.

        Raises: ImageError: this node has lost its lease.
        """
        if self._lease is not None and self._lease.is_wanted:
            await asyncio.to_thread(self._lease.look)

    @asynccontextmanager
    async def here(self, gives_up: Callable[[], bool] = lambda: False) -> AsyncIterator[bool]:
        """Wait until this node is the publisher, and give that to no other meanwhile.

        Yield whether it is: it waits no longer once it `gives_up`. Raises: ImageError: this node has lost its lease.
        """
        lease = self._lease
        if lease is None:
            yield True
            return
        has = lease.hold()
        try:
            while not has and not gives_up():
                has = await asyncio.to_thread(lease.try_publish)
                if not has:
                    await asyncio.sleep(_PAUSE)
            yield has
        finally:
            lease.release()


class SharedWriter(Writer[R]):
    """A writer whose commits are fenced by the part of the publisher too."""

    publishing = True

    def __init__(self, part: Publishing, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._part = part

    def may_write(self) -> bool:
        """Return True if this node is the publisher. Raises: ImageError: it has lost its lease."""
        return self._part.check()

    async def apply(self, change: Callable[[R], T]) -> T:
        """Make a change once this node is the publisher, as `Writer.apply`."""
        for _ in range(_ATTEMPTS):
            async with self._part.here():
                try:
                    return await super().apply(change)
                except NotPublisher:  # another has the part by now
                    await self._part.refresh()
        raise InternalError("another node became the publisher each time that this one was to publish")
