"""The task of one call: its words, and for the lean form the speaker and the text that the model is shown."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Task:
    """The task of one call. `text` ends the prompt: in full form the whole task, in lean form the question or the task.

    A `plain` task is the question itself, before which a line on the speaker is enough. `query` is the question that it
    asks, "" if it asks for something else, and `computed` what was computed for that.

    The other fields are the lean form's. `line` says who speaks and what is done with a text, `whole` the same where
    texts are shown whole and `alone` where none is; an empty one is `line`, or the voice's own. Evidence is chosen for
    `query`, none for "". `material` is shown behind it. `asks` says that `text` is a question. `examples` are earlier
    requests of the kind with their replies.
    """

    text: str
    line: str = ""
    whole: str = ""
    alone: str = ""
    query: str = ""
    computed: str = ""
    material: str = ""
    asks: bool = False
    examples: tuple[tuple[str, str], ...] = ()
    plain: bool = False

    def beside(self, more: str) -> Task:
        """Return the task with further text to be told of: beside the text that a small model is shown, else behind."""
        if not self.material or not more.strip():
            return self.then(more)
        return replace(self, material=f"{self.material}\n{more.strip()}")

    def then(self, more: str) -> Task:
        """Return the task with further lines at its end, such as a description of the reply."""
        return replace(self, text=f"{self.text.strip()}\n\n{more.strip()}".strip())
