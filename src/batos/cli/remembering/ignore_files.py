"""The rules of `.gitignore` and `.batosignore` files: of a folder, and of the folders above it in the same walk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

#: Files of rules: a later one's go before an earlier one's.
_NAMES: Final = (".gitignore", ".batosignore")
#: Bytes of a file of rules that are looked at.
_MOST: Final = 2**18
#: The most `*` of a part of a rule between slashes, and the most `**` parts before its last: with more of them a long
#: path is compared in very many ways.
_STARS, _ANY_DEPTHS = 3, 2
#: The rules of a file that have several of either: each takes long for some paths.
_MANIFOLD: Final = 64


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The rules that hold in a folder, the outermost first, each with the path from its folder to this one."""

    specs: tuple[tuple[str, GitIgnoreSpec], ...] = ()

    def ignores(self, name: str) -> bool:
        """Test if a file of the folder, or a folder in it (`name/`), is ignored: the last rule decides."""
        said = (spec.check_file(f"{above}{name}").include for above, spec in self.specs)
        return next((each for each in reversed(list(said)) if each is not None), False)


@dataclass(slots=True)
class IgnoreFiles:
    """Reads the rules of folders, each after the one that it is in.

    `on_refused` is told of rules that ignore nothing.
    """

    on_refused: Callable[[Path, str], None] = lambda path, reason: None
    _known: dict[Path, IgnoreRules] = field(default_factory=dict)

    def rules_in(self, folder: Path) -> IgnoreRules:
        """Return the rules that hold in a folder."""
        above = self._known.get(folder.parent, IgnoreRules()).specs
        specs = tuple((f"{path}{folder.name}/", spec) for path, spec in above)
        own = tuple(("", spec) for name in _NAMES if (spec := self._read(folder / name)) is not None)
        found = IgnoreRules((*specs, *own))
        if found.specs:  # only what a folder below may ask for
            self._known[folder] = found
        return found

    def _read(self, path: Path) -> GitIgnoreSpec | None:
        try:
            if not path.is_file():
                return None
            with path.open("rb") as file:
                lines = file.read(_MOST).decode("utf-8", "replace").splitlines()
            from pathspec import GitIgnoreSpec  # takes 45 ms, which only folders with rules need

            rules = list(_quick_rules(lines))
            if len(rules) < len(lines):
                self.on_refused(path, f"{len(lines) - len(rules)} of its rules have too many `*`: they ignore nothing")
            return GitIgnoreSpec.from_lines(rules)
        except (OSError, ValueError):
            return None  # rules that cannot be read ignore nothing


def _quick_rules(lines: Sequence[str]) -> Iterator[str]:
    """Yield the rules that are compared in no time, and comments; of rules with several `*` only the first ones."""
    left = _MANIFOLD
    for line in lines:
        parts = [part for part, _ in groupby(line.strip().replace("\\*", "").split("/"))]
        stars = max((part.count("*") for part in parts if part != "**"), default=0)
        depths = parts[:-1].count("**")
        if not line.startswith("#") and max(stars, depths) > 1:
            left -= 1
            if left < 0 or stars > _STARS or depths > _ANY_DEPTHS:
                continue
        yield line
