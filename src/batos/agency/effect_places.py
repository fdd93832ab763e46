"""The node that releases an effect: the publisher, and of a grant that is bound to a machine a node of that one."""

from __future__ import annotations

from batos.agency.records import capabilities, staged_effects
from batos.image import roots
from batos.image.image import LivingImage
from batos.image.roots import Root


def is_released_here(image: LivingImage, root: Root, name: str) -> bool:
    """Test if this node releases an effect: it publishes, and the effect belongs to no other machine.

    For an effect of its own machine a node takes the part of the publisher from one that is on another.
    """
    here, own = image.publishing.is_here, image.publishing.host
    effect = root[roots.EFFECTS].get(name)
    machine = None if own is None or effect is None else capabilities.machine_of(capabilities.find_of(root, effect))
    if own is None or machine is None:
        return here
    return machine == own.id and (here or not image.publishing.is_near(root))


def is_waited_for(image: LivingImage) -> bool:
    """Test if effects wait for this machine while a node of another one publishes."""
    if image.publishing.is_here:
        return False
    with image.snapshot() as root:
        return any(is_released_here(image, root, name) for name in staged_effects.list_waiting(root))
