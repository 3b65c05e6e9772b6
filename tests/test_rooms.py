"""Is the house in order: layers, doors, names that core may not use, sizes, names, and errors that are not swallowed?

The rules are DESIGN section 4 and the house style. A failing test here names file, line and rule.
"""

from __future__ import annotations

import ast
import functools
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "crawltool"

# Which rooms a room may import, besides itself. Imports go one way.
GROUND = {"records", "errors", "limits"}
MAY_IMPORT: dict[str, set[str]] = {
    "ground": set(),
    "core": {"ground"},
    "stores": {"ground", "core"},
    "net": {"ground", "core"},
    "stages": {"ground", "core", "stores", "net"},
    "cli": {"ground", "core", "stores", "net", "stages"},
}
# What stages share; no stage imports another stage.
SHARED_PLUMBING = {"clock", "drain", "feeds", "lines", "outlets", "sinks", "sources", "where"}
STAGES = ("crawl", "dedup", "fetch", "frontier", "parse", "seed")

# Each third-party package is imported by one file, or one named set.
DOORS: dict[str, set[str]] = {
    "ada_url": {"core/urls"},
    "cchardet": {"core/pages/charset"},
    "click": {"cli"},
    "httpx": {"net/transport"},
    "isal": {
        "core/decoding",
        "stores/packings",
        "stores/unpacking",
        "stores/warc",
        "stores/warcfile",
        "stores/warcread",
        "stores/warcrepair",
        "stages/where",
    },
    "lmdb": {"stores/digests", "stores/signatures"},
    "numpy": {"core/pages/simhash", "core/pages/neardup"},
    "publicsuffixlist": {"core/scope"},
    "pycurl": {"net/engine", "net/handle", "net/waiting"},
    "rbloom": {"stores/seen"},
    "resiliparse": {"core/pages/text"},
    "rich": {"cli/progress"},
    "rocksdict": {"stores/crawldb"},
    "selectolax": {"core/pages/html"},
    "trio": {"net", "stages", "cli/frontier", "cli/fetch", "cli/seed"},  # cli: trio.run
    "warcio": {"stores/warcread"},
    "xxhash": {"core/urls", "core/pages/simhash"},
    "zstandard": {"core/decoding", "stores/packings", "stores/unpacking", "stores/frames", "stores/crawllog", "stages/where"},
    "msgspec": {"crawltool"},  # the record library: anywhere
}

# core gives the same answer with the clock stopped and the cable and disk pulled.
NOT_IN_CORE = {
    "asyncio", "datetime", "io", "logging", "multiprocessing", "os", "pathlib", "random", "secrets", "select", "shutil",
    "signal", "socket", "subprocess", "sys", "tempfile", "threading", "time", "trio", "urllib", "uuid",
}  # fmt: skip
# datetime's parsers are pure; its clocks are not.
ALLOWED_IN_CORE = {
    "core/freshness": {"datetime"},
    "core/pages/sitemaps": {"datetime", "io"},
    "core/warcrecords": {"datetime", "uuid"},
}
CLOCKS = {"now", "utcnow", "today", "time", "monotonic", "uuid1", "uuid4", "urandom", "open", "input", "print"}

FILE_LINES_AIM, FILE_LINES_WALL = 300, 450
FUNCTION_LINES_WALL = 60
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "manager", "managers", "common", "misc", "data", "info", "base"}


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def place(path: Path) -> str:
    """core/urls for crawltool/core/urls.py."""
    return path.relative_to(PACKAGE).with_suffix("").as_posix()


def room(name: str) -> str:
    head, _, rest = name.partition("/")
    if rest:
        return head
    return "ground" if head in GROUND else "cli"  # __init__ and __main__ belong to whoever starts it


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name) of every import, those inside functions included."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are written in full"
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"


def own_imports(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, place) of every import of our own modules."""
    for line, name in imports(path):
        parts = name.split(".")
        if parts[0] == "crawltool" and len(parts) > 1:
            target = "/".join(parts[1:])
            while target and not (PACKAGE / f"{target}.py").exists() and not (PACKAGE / target).is_dir():
                target = target.rpartition("/")[0]
            if target:
                yield line, target


@pytest.mark.parametrize("path", modules(), ids=place)
def test_imports_go_one_way(path: Path) -> None:
    here = room(place(path))
    for line, target in own_imports(path):
        there = target if target in MAY_IMPORT else room(target)
        if place(path) == "records" and target == "limits":
            continue  # the one import within the ground floor
        assert there == here or there in MAY_IMPORT[here], f"{path}:{line}: {here} may not import {target}"


def test_the_two_halves_of_core_do_not_know_each_other() -> None:
    wrong = [
        f"{path}:{line}: {target}"
        for path in (PACKAGE / "core").rglob("*.py")
        for line, target in own_imports(path)
        for half in ("core/frontier", "core/pages")
        if target.startswith(half) and not place(path).startswith(half)
    ]
    assert not wrong, "\n".join(wrong)


def test_no_stage_imports_another_stage() -> None:
    wrong = [
        f"{path}:{line}: {target}"
        for path in (PACKAGE / "stages").glob("*.py")
        for line, target in own_imports(path)
        if target.startswith("stages/")
        and target.removeprefix("stages/") not in SHARED_PLUMBING
        # A stage in several files: fetch, fetching, fetchreplay.
        and not any(path.stem.startswith(stage) and target.startswith(f"stages/{stage}") for stage in STAGES)
    ]
    assert not wrong, "\n".join(wrong)


def test_each_package_has_one_door() -> None:
    wrong = []
    for path in modules():
        for line, name in imports(path):
            doors = DOORS.get(name.split(".")[0])
            here = place(path)
            if doors is not None and "crawltool" not in doors and here not in doors and room(here) not in doors:
                wrong.append(f"{path}:{line}: {name} belongs to {', '.join(sorted(doors))}")
    assert not wrong, "\n".join(wrong)


def test_every_dependency_has_a_door_and_every_door_a_dependency() -> None:
    import tomllib

    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    names = {text.split(">")[0].split("<")[0].strip().lower().replace("-", "_") for text in declared}
    names = {"cchardet" if name == "faust_cchardet" else name for name in names}
    assert names == {door.lower() for door in DOORS}, names ^ set(DOORS)


@pytest.mark.parametrize("path", sorted((PACKAGE / "core").rglob("*.py")), ids=place)
def test_core_has_no_clock_disk_or_socket(path: Path) -> None:
    banned = NOT_IN_CORE - ALLOWED_IN_CORE.get(place(path), set())
    for line, name in imports(path):
        assert name.split(".")[0] not in banned, f"{path}:{line}: core may not import {name}"
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            assert called not in CLOCKS, f"{path}:{node.lineno}: core may not call {called}()"


def test_files_are_small() -> None:
    sizes = {place(path): len(path.read_text().splitlines()) for path in modules()}
    large = {name: lines for name, lines in sizes.items() if lines > FILE_LINES_AIM}
    if large:
        warnings.warn(f"over the aim of {FILE_LINES_AIM} lines: {large}", stacklevel=1)
    assert not {name: lines for name, lines in large.items() if lines > FILE_LINES_WALL}


def test_functions_are_small() -> None:
    long = [
        f"{path}:{node.lineno}: {node.name} has {(node.end_lineno or 0) - node.lineno + 1} lines"
        for path in modules()
        for node in ast.walk(parsed(path))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and (node.end_lineno or 0) - node.lineno + 1 > FUNCTION_LINES_WALL
    ]
    assert not long, "\n".join(long)


def test_modules_are_named_for_what_they_do() -> None:
    assert not [place(path) for path in modules() if path.stem in VAGUE_NAMES]


@pytest.mark.parametrize("path", modules(), ids=place)
def test_a_module_says_what_it_answers(path: Path) -> None:
    text = path.read_text()
    assert not text.strip() or ast.get_docstring(parsed(path)), f"{path}: no docstring"


def test_public_names_have_docstrings() -> None:
    bare = [
        f"{path}:{node.lineno}: {node.name}"
        for path in modules()
        for owner in ast.walk(parsed(path))
        if isinstance(owner, (ast.Module, ast.ClassDef)) and not getattr(owner, "name", "").startswith("_")
        for node in owner.body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
        and len(node.body) > 1  # the class speaks for its one-line methods
        and not any(isinstance(mark, ast.Name) and mark.id == "overload" for mark in node.decorator_list)
    ]
    assert not bare, "\n".join(bare)


def test_no_error_is_swallowed() -> None:
    wrong = []
    for path in modules():
        for node in ast.walk(parsed(path)):
            if not isinstance(node, ast.ExceptHandler):
                continue
            caught = [node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]][0]
            broad = node.type is None or any(
                isinstance(one, ast.Name) and one.id in ("Exception", "BaseException") for one in caught
            )
            silent = all(isinstance(step, (ast.Pass, ast.Continue)) for step in node.body)
            if broad and silent:
                wrong.append(f"{path}:{node.lineno}: swallows every error")
    assert not wrong, "\n".join(wrong)


def test_only_main_exits() -> None:
    wrong = [
        f"{path}:{node.lineno}"
        for path in modules()
        if place(path) != "cli/main"
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Attribute) and node.attr == "exit" and isinstance(node.value, ast.Name) and node.value.id == "sys"
    ]
    assert not wrong, "\n".join(wrong)


def test_nothing_is_left_to_do() -> None:
    marks = ("TO" + "DO", "FIX" + "ME", "XX" + "X")
    wrong = [
        f"{path}:{number}"
        for path in modules()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if any(mark in line for mark in marks)
    ]
    assert not wrong, "\n".join(wrong)


def test_no_module_is_dead() -> None:
    """Every module is imported by another, or is a command, or is started by name."""
    reached = {target for path in modules() for _, target in own_imports(path)}
    started = {"__main__", "__init__", "cli/main", "cli/manpages", "net/transport"}
    commands = {f"cli/{name}" for name in _commands()}
    dead = [place(path) for path in modules() if place(path) not in reached | started | commands and path.stem != "__init__"]
    assert not dead, dead


def _commands() -> list[str]:
    from crawltool.cli.main import COMMANDS

    return list(COMMANDS)
