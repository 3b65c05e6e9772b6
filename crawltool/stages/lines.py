"""How do records reach a stage, and how do they leave it?

The one name under which stages use stages/where (the grammar of WHERE, lines, bad lines), stages/sources (batches in)
and stages/sinks (lines out). A filter is:

    with FilterDrain() as drain:
        source, sink = open_source(settings.input, drain), open_sink(settings.output, parse_routes(settings.routes))
        for batch in source:
            sink.publish(...)     # law 4: publish, save own memory, let go
            batch.done()
        sink.close(end=not drain.stopping)
"""

from __future__ import annotations

from crawltool.stages.sinks import AsyncSink, Sink, open_async_sink, open_sink, parse_routes
from crawltool.stages.sources import AsyncSource, Batch, Inputs, Source, open_async_source, open_source
from crawltool.stages.where import Splitter, Trouble, Where, open_file, parse, paths, shown

__all__ = [
    "AsyncSink",
    "AsyncSource",
    "Batch",
    "Inputs",
    "Sink",
    "Source",
    "Splitter",
    "Trouble",
    "Where",
    "open_async_sink",
    "open_async_source",
    "open_file",
    "open_sink",
    "open_source",
    "parse",
    "parse_routes",
    "paths",
    "shown",
]
