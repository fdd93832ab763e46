"""Representations of an object's slots compared: bytes, loading, lookup and writing of four candidates.

`state`: the slots are the object's own state, as in UvmObject. `dict`, `mapping`, `btree`: they are in one attribute,
a plain dict, a PersistentMapping or an OOBTree. These four delegate by the same walk and have names of one length,
for a record holds its class's name; `uvm_object` is the real one. Every candidate gets the same objects in a file
of its own; times are CPU time, the best of several rounds in which the candidates take turns.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from BTrees.OOBTree import OOBTree
from persistent import Persistent
from persistent.list import PersistentList
from persistent.mapping import PersistentMapping
from transaction import TransactionManager
from ZODB.Connection import Connection
from ZODB.DB import DB
from ZODB.FileStorage import FileStorage

from batos.objects.prototype import UvmObject, is_reserved
from report import Goal, report

DEPTHS = (0, 1, 5, 20)
LOOPS, TRIES = 500, 20


class Delegating(Persistent):
    """The walk that every candidate shares; `place` gives an object's slots."""

    place: ClassVar[attrgetter[Any]] = attrgetter("_slots")
    _parents: tuple[Delegating, ...]

    def __getattr__(self, name: str) -> Any:
        if name[:1] == "_" and is_reserved(name):
            raise AttributeError(name)
        place = type(self).place
        seen: set[Delegating] = set()
        pending: list[tuple[Delegating, int]] = []
        holder, depth = self, 0
        while True:
            if holder not in seen:
                seen.add(holder)
                parents = holder._parents
                slots = place(holder)
                if name in slots:
                    return slots[name]
                if parents:
                    depth += 1
                    if len(parents) > 1:
                        pending.extend([(parent, depth) for parent in parents[:0:-1]])
                    holder = parents[0]
                    continue
            if not pending:
                raise AttributeError(name)
            holder, depth = pending.pop()


class BoxedSlots(Delegating):
    """Slots in one attribute; every name is looked up by the walk."""

    box: ClassVar[Callable[[Mapping[str, Any]], Any]]
    _slots: Any

    def __init__(self, slots: Mapping[str, Any], parents: Sequence[BoxedSlots] = ()) -> None:
        Persistent.__setattr__(self, "_slots", type(self).box(slots))
        Persistent.__setattr__(self, "_parents", tuple(parents))

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_p_"):
            super().__setattr__(name, value)
        else:
            self._slots[name] = value


class InPlain(BoxedSlots):
    """A plain dict in the object's record."""

    box = dict

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_p_"):
            self._p_changed = True
        super().__setattr__(name, value)


class InTable(BoxedSlots):
    """A PersistentMapping: a second record."""

    box = PersistentMapping


class InBTree(BoxedSlots):
    """An OOBTree: a second record, more when it is large."""

    box = OOBTree


class InState(Delegating):
    """The object's own state: what UvmObject does, under a name as long as the other candidates'."""

    place = attrgetter("__dict__")

    def __init__(self, slots: Mapping[str, Any], parents: Sequence[InState] = ()) -> None:
        self.__dict__.update(slots)
        self._parents = tuple(parents)


Candidate: TypeAlias = Callable[[Mapping[str, Any], Sequence[Any]], Any]
CANDIDATES: dict[str, Candidate] = {
    "state": InState,
    "dict": InPlain,
    "mapping": InTable,
    "btree": InBTree,
    "uvm_object": UvmObject,
}


class Bench:
    """A candidate in a database file of its own."""

    def __init__(self, make: Candidate, folder: Path, count: int) -> None:
        self.make = make
        self.path = folder / "image.fs"
        self.db = DB(FileStorage(str(self.path)), cache_size=10 * count + 1000)
        self.connection = self.db.open(TransactionManager(explicit=True))
        self.connection.transaction_manager.begin()
        self.root = self.connection.root()
        self.root["parent"] = make({"role": "guide"}, ())
        self.root["large"] = make({f"slot_{number}": "codex text " * number for number in range(30)}, ())
        self.root["objects"] = PersistentList()
        self.commit()
        self.bytes, self.records = self._record_sizes(count)
        for depth in DEPTHS:
            self.root[str(depth)] = self._chain(depth)
        self.commit()

    def commit(self) -> int:
        """Commit, begin again, and give the bytes by which the file grew."""
        before = self.path.stat().st_size
        self.connection.transaction_manager.commit()
        self.connection.transaction_manager.begin()
        return self.path.stat().st_size - before

    def _record_sizes(self, count: int) -> tuple[float, float]:
        """Return the bytes of record data and records per object, for objects as a mind is full of."""
        parent, objects = self.root["parent"], self.root["objects"]
        known = {self.root._p_oid, objects._p_oid}
        for number in range(count):
            objects.append(self.make(typical_slots(number, parent), (parent,)))
        self.commit()
        sizes: list[int] = []
        for stored in self.db.storage.iterator():  # the last is ours; its records are read while the file is open
            sizes = [len(record.data) for record in stored if record.oid not in known]
        return sum(sizes) / count, len(sizes) / count

    def _chain(self, depth: int) -> Any:
        """Return an object that finds `wanted` that many parents up; each of them has slots of its own."""
        obj = self.make({"wanted": 1}, ())
        for number in range(depth):
            obj = self.make(typical_slots(number, obj), (obj,))
        return obj

    def load_us(self) -> float:
        """Measure the microseconds of CPU to load an object from the file and read one slot of it."""
        self.connection.cacheMinimize()
        objects = list(self.root["objects"])
        return 1e6 * cpu_seconds(lambda: [obj.name for obj in objects]) / len(objects)

    def ram_bytes(self) -> float:
        """Return the bytes of memory that a loaded object takes, its slots included."""
        self.connection.cacheMinimize()
        objects = list(self.root["objects"])
        tracemalloc.start()
        for obj in objects:
            assert obj.name
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return size / len(objects)

    def lookup_ns(self, depth: int) -> float:
        """Measure the nanoseconds of CPU to read a slot so many parents up, everything being loaded."""
        obj = self.root[str(depth)]

        def read() -> None:
            for _ in range(LOOPS):
                obj.wanted  # noqa: B018 - the reading is what is measured

        return 1e9 * min(cpu_seconds(read) for _ in range(TRIES)) / LOOPS

    def cold_us(self) -> float:
        """Measure the microseconds of CPU to read a slot through the longest chain, nothing of it being loaded."""
        self.connection.cacheMinimize()
        obj = self.root[str(max(DEPTHS))]
        return 1e6 * cpu_seconds(lambda: obj.wanted)

    def write_bytes(self, obj: Any, slot: str) -> int:
        """Return the bytes by which the file grows when one slot is changed and committed."""
        setattr(obj, slot, "other")
        return self.commit()


def typical_slots(number: int, friend: Any) -> dict[str, Any]:
    """Return a thought's worth of slots: texts, numbers, a list, a dict and a reference."""
    return {
        "name": f"object {number}",
        "text": f"{number}: the present moment is the only one there is, and it is enough",
        "weight": number / 7,
        "asked": number,
        "partials": [f"partial {number}", "and another", "and a third"],
        "counts": {"calls": number, "tokens": 10 * number},
        "about": friend,
    }


def cpu_seconds(work: Callable[[], object]) -> float:
    """Measure the CPU time of this thread for one run of the work."""
    begun = time.thread_time()
    work()
    return time.thread_time() - begun


def measure_all(benches: Mapping[str, Bench], rounds: int) -> dict[str, dict[str, Any]]:
    """Measure every figure of every candidate; of the timed ones the least of all rounds."""
    best: dict[str, dict[str, float]] = {name: {} for name in benches}

    def keep(name: str, key: str, value: float) -> None:
        best[name][key] = min(value, best[name].get(key, value))

    for turn in range(rounds):
        print(f"round {turn + 1} of {rounds}", file=sys.stderr)
        for name, bench in benches.items():
            keep(name, "load_us", bench.load_us())
            keep(name, "cold_20_us", bench.cold_us())
            for depth in DEPTHS:
                keep(name, f"lookup_ns_{depth}", bench.lookup_ns(depth))
    return {
        name: {
            "bytes_per_object": round(bench.bytes, 1),
            "records_per_object": bench.records,
            "ram_bytes_per_object": round(bench.ram_bytes()),
            "write_bytes": bench.write_bytes(bench.root["objects"][0], "asked"),
            "write_bytes_large": bench.write_bytes(bench.root["large"], "slot_1"),
            **{key: round(value, 2) for key, value in best[name].items()},
        }
        for name, bench in benches.items()
    }


def goals(figures: Mapping[str, Mapping[str, Any]]) -> list[Goal]:
    """Return the goals: the candidate in use is no worse than the best other (times: by a tenth), and the real object
    is near to it.
    """
    found = []
    for key, most in (
        ("bytes_per_object", 1.0),
        ("ram_bytes_per_object", 1.0),
        ("write_bytes", 1.0),
        ("load_us", 1.1),
        ("cold_20_us", 1.1),
        *((f"lookup_ns_{depth}", 1.1) for depth in DEPTHS),
    ):
        best = min(figures[name][key] for name in ("dict", "mapping", "btree"))
        found.append(Goal(f"{key}: state to the best other", round(figures["state"][key] / best, 3), most))
    for depth in DEPTHS:
        key = f"lookup_ns_{depth}"
        ratio = round(figures["uvm_object"][key] / figures["state"][key], 3)
        found.append(Goal(f"{key}: UvmObject to state", ratio, 1.2))
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description="Measure four representations of an object's slots.")
    parser.add_argument("--quick", action="store_true", help="a smoke run: the shape of the report, not its figures")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report there too")
    options = parser.parse_args(arguments)
    count, rounds = (100, 1) if options.quick else (5000, 7)
    with tempfile.TemporaryDirectory() as folder:
        benches: dict[str, Bench] = {}
        for name, make in CANDIDATES.items():
            place = Path(folder, name)
            place.mkdir()
            benches[name] = Bench(make, place, count)
        figures = measure_all(benches, rounds)
        for bench in benches.values():
            close(bench.connection, bench.db)
    report({"objects": count, "chosen": "state", "representations": figures}, goals(figures), options.json)


def close(connection: Connection, db: DB) -> None:
    """End the open transaction, then the connection and its database."""
    connection.transaction_manager.abort()
    connection.close()
    db.close()


if __name__ == "__main__":
    main()
