from collections.abc import Iterable
from typing import Protocol

class Element(Protocol):
    def process(self, texts_: Iterable[str]) -> list[str]: ...

class Lexicon:
    def __init__(self, *pipeline: Element) -> None: ...
