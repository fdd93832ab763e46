"""State of the house: names, prose, imports and the time of its tests.

`ambiguous_names` counts class names that stand for two things, and file names that stand twice and not in the table of
docs/words.md. `docstrings_plain` is the share of public modules, classes and functions whose docstring holds the rules
of prose_side.py, where a missing one does not; `docstrings_plain_written` is that share of those that exist.
`root_any` counts annotations `root: Any`, `verb_files` the files that name one verb which asks once (`grants revoke`),
`function_p90` is in lines without the docstring. `files` are those of all packages but the emulator, `lines` those of
batos alone, as is `chain`, the longest chain of imports in modules; `single_importer_small` counts its modules under 60
lines that one module alone imports, `wide_folders` its folders with over 25 modules. `any_maps` counts
`dict[str, Any]` and `Mapping[str, Any]`, `any_functions` is the share of functions with Any in their annotations,
`public_image` counts the public names of image. `over_budget` counts what rooms have beyond bench/rooms.json, which
--write-budget writes anew.

The figures of a run (`tests`, `suite_seconds`, `ci_seconds`, `coverage`) need one: without --quick the script runs
`.ci/run` in a fresh clone of the last commit, and then, where `coverage` is installed, the suite once more under it.
--suite takes what an earlier `.ci/run` or `make test` printed, --coverage what `coverage json` wrote. --list prints
what is behind a figure: `--list ambiguous_names`, `--list docstrings src/batos/image`, `--list root_any`,
`--list upward_imports`, `--list cycles`, `--list single_importer_small`, `--list wide_folders`, `--list over_budget`,
and functions and classes named by a participle: `--list participles`.

    python bench/house.py [--quick] [--suite FILE] [--coverage FILE] [--list FIGURE [PATH]] [--json FILE]
    python bench/house.py --write-budget
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import imports_side
import names_side
import prose_side
import rooms_side
from batos.cli.imports import pause_collector
from report import Goal, report

ROOT = Path(__file__).resolve().parents[1]
Files = list[tuple[Path, str]]
#: The trees of such files, in their order.
Trees = list[tuple[Path, ast.Module]]
#: A part of .ci/run begins with its name and the seconds since the start of the run.
PART = re.compile(r"^=== (.+) \((\d+) s\)$", re.MULTILINE)
#: Figures behind which --list can show something.
LISTED = ("docstrings", "ambiguous_names", "participles", "root_any", "upward_imports", "cycles")
#: The same of the layout.
LAYOUT = ("single_importer_small", "wide_folders", "over_budget")
PASSED = re.compile(r"(\d+) passed.* in ([\d.]+)s")


def sources(root: Path = ROOT) -> Files:
    """Read every Python file under src/, with its path from the checkout."""
    return [(path.relative_to(root), path.read_text(encoding="utf-8")) for path in sorted((root / "src").rglob("*.py"))]


def parse_all(files: Files) -> Trees:
    """Return the tree of every file."""
    return [(path, ast.parse(text)) for path, text in files]


def count_files(paths: Iterable[Path]) -> int:
    """Count the files of all packages under src/ but the emulator, which stands in for a program that is not ours."""
    return sum(path.parts[1] != "ollama_emulator" for path in paths)


def function_lengths(found: Iterable[prose_side.Entry]) -> list[int]:
    """List the lengths of all functions in lines, sorted; a docstring does not count."""
    lengths = []
    for entry in found:
        if isinstance(entry.node, prose_side.Function):
            body = entry.node.body
            first = body[1] if entry.text is not None and len(body) > 1 else body[0]
            head = body[0].lineno - entry.node.lineno
            lengths.append((entry.node.end_lineno or 0) - first.lineno + 1 + head)
    return sorted(lengths)


def root_any(files: Iterable[tuple[Path, prose_side.Source]]) -> Iterator[str]:
    """Yield the places where something named root is annotated as Any."""
    for path, source in files:
        for node in prose_side.statements(prose_side.parse(source)):
            if isinstance(node, ast.arg):
                name, annotation = node.arg, node.annotation
            elif isinstance(node, ast.AnnAssign):
                name, annotation = ast.unparse(node.target).rpartition(".")[2], node.annotation
            else:
                continue
            if name == "root" and annotation is not None and ast.unparse(annotation) in {"Any", "'Any'"}:
                yield f"{path}:{node.lineno}"


def words_page(root: Path = ROOT) -> str:
    """Read docs/words.md, whose table says which file names may stand twice."""
    page = root / "docs" / "words.md"
    return page.read_text(encoding="utf-8") if page.is_file() else ""


def layout(files: Files, rooms: rooms_side.Rooms, imports: imports_side.Graph) -> dict[str, list[str]]:
    """Return what the rules of the layout find: small modules of one reader, wide folders, rooms over their budget."""
    ours = [(path, text) for path, text in files if path.parts[1] == "batos"]
    lengths = {imports_side.module_of(path): text.count("\n") for path, text in ours}
    small = imports_side.small_single_importers({name: imports[name] for name in lengths}, lengths)
    wide = imports_side.wide_folders(path for path, _ in ours)
    over = rooms_side.over_budget(rooms, rooms_side.read_budget())
    return dict(zip(LAYOUT, (small, wide, over), strict=True))


def layout_now() -> dict[str, list[str]]:
    """Return the same for the sources as they are."""
    files = sources()
    trees = parse_all(files)
    return layout(files, rooms_side.sizes(files, trees), imports_side.graph(trees))


def still(files: Files) -> dict[str, Any]:
    """Measure what can be read from the sources alone."""
    trees = parse_all(files)
    found = [entry for path, tree in trees for entry in prose_side.entries(path, tree)]
    plain, written = prose_side.shares(found)
    lengths = function_lengths(found)
    imports = imports_side.graph(trees)
    rooms = rooms_side.sizes(files, trees)
    ours = [(text, tree) for (path, text), (_, tree) in zip(files, trees, strict=True) if path.parts[1] == "batos"]
    counts = [text.count("\n") for text, _ in ours]
    return {
        "lines": sum(counts),
        "files": count_files(path for path, _ in files),
        "file_median": statistics.median(counts),
        "chain": imports_side.longest_chain(imports),
        **{figure: len(found) for figure, found in layout(files, rooms, imports).items()},
        "classes": sum(isinstance(entry.node, ast.ClassDef) for entry in found),
        "ambiguous_names": len(names_side.ambiguous(trees, words_page())),
        "function_p90": lengths[len(lengths) * 9 // 10],
        "root_any": sum(1 for _ in root_any(trees)),
        "verb_files": sum("GRANTS_REVOKE" in text for _, text in files),
        "any_maps": rooms_side.untyped_maps(text for text, _ in ours),
        "any_functions": rooms_side.untyped_functions([tree for _, tree in ours]),
        "public_image": rooms["image"]["names"],
        "docstrings_plain": plain,
        "docstrings_plain_written": written,
        "upward_imports": len(imports_side.upward(imports, ROOT / "pyproject.toml")),
        "cycles": len(imports_side.cycles(imports)),
    }


def run_figures(log: str) -> dict[str, Any]:
    """Read the figures of a run from what .ci/run or pytest printed: the last summary is that of the whole suite."""
    parts = {name: int(seconds) for name, seconds in PART.findall(log)}
    summaries = PASSED.findall(log)
    whole = max(summaries, key=lambda summary: int(summary[0]), default=None)
    return {
        "tests": int(whole[0]) if whole else None,
        "suite_seconds": float(whole[1]) if whole else None,
        "ci_seconds": parts.get("all held"),
    }


def coverage_share(document: Path | None) -> float | None:
    """Return the share of lines that the suite ran, from what `coverage json` wrote."""
    if document is None or not document.is_file():
        return None
    percent: float = json.loads(document.read_text(encoding="utf-8"))["totals"]["percent_covered"]
    return round(percent / 100, 4)


def run_ci(folder: Path) -> str:
    """Run .ci/run in a fresh clone of the last commit and return what it printed."""
    clone = folder / "checkout"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    done = subprocess.run([str(clone / ".ci" / "run")], stdout=subprocess.PIPE, text=True, check=False, cwd=clone)
    if done.returncode:
        print(f".ci/run failed:\n{done.stdout[-4000:]}", file=sys.stderr)
    return done.stdout


def run_coverage(folder: Path) -> Path | None:
    """Run the suite under coverage, processes that it starts included, and return the report; None without coverage."""
    if importlib.util.find_spec("coverage") is None:
        print("coverage is not installed: its figure is left out", file=sys.stderr)
        return None
    packages = ",".join(sorted(path.name for path in (ROOT / "src").iterdir() if path.is_dir()))
    config, out = folder / "coveragerc", folder / "coverage.json"
    config.write_text(
        f"[run]\nsource_pkgs = {packages}\nparallel = true\npatch = subprocess\ndata_file = {folder / 'data'}\n",
        encoding="utf-8",
    )
    coverage = [sys.executable, "-m", "coverage"]
    given = f"--rcfile={config}"
    for arguments in (
        ["run", given, "-m", "pytest", "-q", "-n", "auto"],
        ["combine", "-q", given],
        ["json", "-q", given, "-o", str(out)],
    ):
        subprocess.run([*coverage, *arguments], cwd=ROOT, check=False, stdout=sys.stderr)
    return out


def list_figure(figure: str, under: str) -> Iterator[str]:
    """Yield what is behind a figure, for the files under a path."""
    files = sources()
    if figure == "docstrings":
        chosen = [(path, text) for path, text in files if path.is_relative_to(under)]
        yield from prose_side.list_faults([entry for path, text in chosen for entry in prose_side.entries(path, text)])
    elif figure == "ambiguous_names":
        for name, where in names_side.ambiguous(files, words_page()).items():
            if any(Path(place).is_relative_to(under) for place in where):
                yield f"{name}: {', '.join(where)}"
    elif figure == "participles":
        for path, text in files:
            if path.is_relative_to(under):
                yield from names_side.participles(path, text)
        yield from (
            fault for fault in names_side.nameless_classes(files) if Path(fault.split(":")[0]).is_relative_to(under)
        )
    elif figure == "root_any":
        yield from root_any(files)
    elif figure == "upward_imports":
        yield from imports_side.upward(imports_side.graph(files), ROOT / "pyproject.toml")
    else:
        yield from (", ".join(group) for group in imports_side.cycles(imports_side.graph(files)))


def goals(values: dict[str, Any]) -> Sequence[Goal]:
    """Return the goals of the house; a figure that needs a run is missed without one."""
    return [
        Goal("ambiguous_names", values["ambiguous_names"], 0),
        Goal("root_any", values["root_any"], 0),
        Goal("verb_files", values["verb_files"], 2),
        Goal("any_maps", values["any_maps"], 300),
        Goal("any_functions", values["any_functions"], 0.08),
        Goal("public_image", values["public_image"], 150),
        Goal("classes", values["classes"], 750),
        Goal("files", values["files"], 400),
        Goal("over_budget", values["over_budget"], 0),
        Goal("docstrings_plain", values["docstrings_plain"], 0.95, "at_least"),
        Goal("docstrings_plain_written", values["docstrings_plain_written"], 1.0, "at_least"),
        Goal("upward_imports", values["upward_imports"], 0),
        Goal("cycles", values["cycles"], 0),
        Goal("chain", values["chain"], 28),
        Goal("single_importer_small", values["single_importer_small"], 0),
        Goal("wide_folders", values["wide_folders"], 0),
        Goal("suite_seconds", values["suite_seconds"], 300),
        Goal("ci_seconds", values["ci_seconds"], 480),
    ]


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="leave out what needs a run of the suite")
    parser.add_argument("--suite", type=Path, help="what an earlier .ci/run or make test printed")
    parser.add_argument("--coverage", type=Path, help="what coverage json wrote")
    parser.add_argument("--list", nargs="+", metavar=("FIGURE", "PATH"), help="print what is behind a figure")
    parser.add_argument("--write-budget", action="store_true", help="write the sizes of all rooms to bench/rooms.json")
    parser.add_argument("--json", type=Path, help="write the document to this file too")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, or list what is behind a figure."""
    given = options(arguments)
    if given.write_budget:
        files = sources()
        rooms_side.write_budget(rooms_side.sizes(files, parse_all(files)))
        return
    if given.list:
        figure, under = given.list[0], given.list[1] if len(given.list) > 1 else "src"
        if figure not in LISTED + LAYOUT:
            sys.exit(f"nothing to list for {figure!r}: give one of {', '.join(LISTED + LAYOUT)}")
        print("\n".join(layout_now()[figure] if figure in LAYOUT else list_figure(figure, under)))
        return
    with pause_collector():  # which would look through the trees of all files, again and again
        values = still(sources())
    with tempfile.TemporaryDirectory() as name:
        log, document = "", given.coverage
        if given.suite is not None:
            log = given.suite.read_text(encoding="utf-8")
        elif not given.quick:
            log = run_ci(Path(name))
            document = document or run_coverage(Path(name))
        values |= run_figures(log) | {"coverage": coverage_share(document)}
    report(values, goals(values), given.json)


if __name__ == "__main__":
    main()
