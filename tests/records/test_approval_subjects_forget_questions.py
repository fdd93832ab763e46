"""Questions about forgetting: bound to documents of the mission's user as they are, by name and content."""

from __future__ import annotations

from tests.image.open_image import brief, open_image
from tests.memory.test_document_store import incoming, store_of

from batos.records import approval_subjects

AT = "2026-11-26T10:00:00.000Z"


async def test_a_question_lists_its_users_documents_with_their_digests() -> None:
    """What is another's, or gone, is not in it; of nothing there is no question."""
    async with open_image(None) as image:
        given = [incoming("Red.", "/red", "tester"), incoming("Blue.", "/blue", "bob")]
        red, blue = [each["document"] for each in (await store_of(image).remember(given))["remembered"]]
        mission = await image.accept(brief())
        with image.snapshot() as root:
            found = approval_subjects.forget_candidate(root, [blue, red, "d-gone"], mission, AT)
            assert found is not None
            assert (found.forgets, found.source.split()[:2]) == ((red,), ["forget", red])
            assert approval_subjects.forget_candidate(root, [blue], mission, AT) is None
            assert approval_subjects.reason_not_forgettable(root, found) is None
        await store_of(image).forget([red])
        with image.snapshot() as root:
            assert "not there" in str(approval_subjects.reason_not_forgettable(root, found))
