"""core/pages/charset: the charset parameter of a Content-Type."""

from __future__ import annotations

import pytest

from crawltool.core.pages.charset import of_content_type


@pytest.mark.parametrize(
    ("value", "label"),
    [
        ("text/html; charset=utf-8", "utf-8"),
        ("text/html;CHARSET=UTF-8;x=y", "UTF-8"),
        ("text/html; x=y; charset = latin1", "latin1"),
        ('text/html; charset="utf8', "utf8"),
        ("text/html; charset=", None),
        ("text/html; nocharset=utf-8", None),
        ("text/html", None),
        (None, None),
    ],
)
def test_the_charset_parameter_is_found_as_servers_write_it(value: str | None, label: str | None) -> None:
    assert of_content_type(value) == label
