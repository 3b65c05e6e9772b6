"""The test web: one process, many hosts on 127.0.0.0/8, with the traps and faults that the field knows.

Start it by hand with `python -m tests.web` (see --help), or in a test:

    with Web(tmp_path, hosts={"a": "plain pages=20", "b": "silent"}) as web:
        web.url("a", "/p3.html")    # an absolute URL
        web.log()                   # every request so far, by the server's own clock

To add a host: write a function with `@behaviour` in a file of tests/web/behaviours (its docstring is its
description, its keyword arguments are its settings) and give it a row in tests/web/table.py.
"""

from tests.web.process import Ask, Web

__all__ = ["Ask", "Web"]
