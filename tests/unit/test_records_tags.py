"""records: tags are any JSON and come back byte for byte."""

from __future__ import annotations

import pytest

from crawltool import records


@pytest.mark.parametrize("value", [b'{"a": [1, 2.0]}', b'"x"', b"7", b"[null]"])
@pytest.mark.parametrize("head", [b'{"type":"candidate","url":"u"', b'{"type":"target","url":"u","lease":"1-1","kind":"page"'])
def test_tags_of_any_shape_are_kept_as_written(head: bytes, value: bytes) -> None:
    record = records.decode(head + b',"tags":' + value + b"}")
    assert isinstance(record, records.Candidate | records.Target)
    assert record.tags is not None and bytes(record.tags) == value
    assert records.encode(record).endswith(b',"tags":' + value + b"}\n")


def test_a_record_without_tags_says_nothing_about_them() -> None:
    record = records.decode(b'{"type":"candidate","url":"u"}')
    assert isinstance(record, records.Candidate) and record.tags is None
    assert b"tags" not in records.encode(record)
