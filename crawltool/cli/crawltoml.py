"""How is crawl.toml written, so that a person can read and edit it?

A new file shows every option of the policy, those not given as comments with their defaults. A change touches only the
lines of the keys that change: a person's comments and order stay. Called by cli/policy.
"""

from __future__ import annotations

import json
import re
import textwrap
import tomllib
from collections.abc import Mapping
from typing import Any

from crawltool.cli.settings import BY_NAME, GROUPS, POLICY_GROUPS, SETTINGS, Setting
from crawltool.errors import BadPolicy

HEAD = """\
# The policy of this crawl: what it may fetch, how fast, and who answers for it.
# Flags and CRAWLTOOL_* variables win over this file; it wins over ~/.config/crawltool/config.toml.
# Each key is the option of the same name; crawltool-init(1) explains them. Lines after '#' show the defaults.
"""


def written(value: Any) -> str:
    """Write a value as TOML: text, number, truth, or a list of texts."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(written(item) for item in value) + "]"
    if isinstance(value, (int, float)):
        return repr(value)
    # A JSON string is a TOML basic string, but for DEL, which JSON leaves bare.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def fresh(values: Mapping[str, Any]) -> str:
    """Write a whole new file. values: option name -> value as typed."""
    parts = [HEAD, *_lines("profile", values), ""]
    for group in POLICY_GROUPS:
        parts.append(f"[{group}]  # {GROUPS[group].lower()}")
        for setting in SETTINGS:
            if setting.group == group and setting.in_policy:
                parts += _lines(setting.name, values)
        parts.append("")
    return "\n".join(parts)


def _lines(name: str, values: Mapping[str, Any]) -> list[str]:
    setting = BY_NAME[name]
    comment = [f"# {line}" for line in textwrap.wrap(setting.help, 98)]
    if name in values:
        return [*comment, f"{name} = {written(values[name])}"]
    return [*comment, f"#{name} = {written(_shown_default(setting))}"]


def _shown_default(setting: Setting) -> Any:
    return setting.default if setting.default is not None else [] if setting.multiple else ""


def changed(text: str, values: Mapping[str, Any]) -> str:
    """Set keys in an existing file. Raises BadPolicy when the result would not say what was asked."""
    lines = text.removesuffix("\n").split("\n")  # not splitlines: a value may hold U+0085 and its like
    for name, value in values.items():
        _put(lines, BY_NAME[name].table, name, f"{name} = {written(value)}")
    result = "\n".join(lines) + "\n"
    document = tomllib.loads(result)
    for name, value in values.items():
        table = BY_NAME[name].table
        found = (document.get(table, {}) if table else document).get(name)
        if found != (list(value) if isinstance(value, tuple) else value):
            raise BadPolicy(f"crawl.toml: cannot set {name} without harm to the file", remedy="set it by hand")
    return result


def _put(lines: list[str], table: str, name: str, line: str) -> None:
    start, end = _bounds(lines, table)
    live = [n for n in range(start, end) if re.match(rf"\s*{name}\s*=", lines[n])]
    if live:
        lines[live[0] : live[0] + _height(lines, live[0])] = [line]
        return
    shown = [n for n in range(start, end) if re.match(rf"\s*#\s*{name}\s*=", lines[n])]
    if shown:
        lines[shown[0]] = line
    else:
        lines.insert(_last_written(lines, start, end), line)


def _bounds(lines: list[str], table: str) -> tuple[int, int]:
    """Give the first and last-plus-one line of a table's body; the table is added at the end when it is missing."""
    heads = [(n, match[1].strip()) for n, line in enumerate(lines) if (match := re.match(r"\s*\[([^\[\]]+)\]", line))]
    if not table:
        return 0, heads[0][0] if heads else len(lines)
    for position, (n, name) in enumerate(heads):
        if name == table:
            return n + 1, heads[position + 1][0] if position + 1 < len(heads) else len(lines)
    lines += ["", f"[{table}]"]
    return len(lines), len(lines)


def _height(lines: list[str], start: int) -> int:
    """Tell over how many lines a value runs: until it parses."""
    for end in range(start + 1, len(lines) + 1):
        try:
            tomllib.loads("\n".join(lines[start:end]))
        except tomllib.TOMLDecodeError:
            continue
        return end - start
    return 1


def _last_written(lines: list[str], start: int, end: int) -> int:
    while end > start and not lines[end - 1].strip():
        end -= 1
    return end
