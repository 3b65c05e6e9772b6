"""How do records reach a synchronous filter, and how do they leave it?

The one name under which parse, dedup and seed use stages/where (the grammar of WHERE, lines, bad lines), stages/feeds
(batches in) and stages/outlets (lines out). The trio stages import stages/sources and stages/sinks instead, which wait by
trio: a filter does not pay for its import. A filter is:

    with FilterDrain() as drain:
        source, sink = open_source(settings.input, drain), open_sink(settings.output, parse_routes(settings.routes))
        for batch in source:
            sink.publish(...)     # law 4: publish, save own memory, let go
            batch.done()
        sink.close(end=not drain.stopping)
"""

from __future__ import annotations

from crawltool.stages.feeds import Batch, Source, open_source
from crawltool.stages.outlets import Sink, open_sink, parse_routes
from crawltool.stages.where import Splitter, Trouble, Where, open_file, parse, paths, shown

__all__ = [
    "Batch",
    "Sink",
    "Source",
    "Splitter",
    "Trouble",
    "Where",
    "open_file",
    "open_sink",
    "open_source",
    "parse",
    "parse_routes",
    "paths",
    "shown",
]
