"""Real processes end as the signal, the reader or the end of input demands."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from crawltool.stages import drain
from crawltool.stores.spool import SpoolWriter

LINE = b'{"type":"control","action":"a"}\n'
# What cli/main does with a stage's ending.
FRAME = """
import sys
from crawltool import limits
from crawltool.errors import Unfinished
from crawltool.stages.drain import *
from crawltool.stages.lines import *
limits.GRACE_MARGIN_S = 0.05
def stage():
{body}
try:
    stage()
except EndedBySignal as ending:
    die_by(ending.signum)
except Unfinished as ending:
    sys.exit(ending.exit_code)
"""
FILTER = """
    with FilterDrain({grace}) as drain:
        source, sink = open_source({where!r}, drain), open_sink("-")
        print("here", file=sys.stderr, flush=True)
        for batch in source:
            sink.publish(batch.lines)
            batch.done()
        sink.close()
"""
TRIO = """
    import trio
    async def main():
        with TrioDrain({grace}) as drain:
            print("here", file=sys.stderr, flush=True)
            await drain.stopping.wait()
            left = drain.grace_ends_at - trio.current_time()
            print(drain.reason, 0 < left <= {grace}, flush=True)
            {then}
    trio.run(main)
"""


def start(body: str) -> subprocess.Popen[bytes]:
    """Start a stage; its handlers are in place when this returns."""
    process = subprocess.Popen(
        [sys.executable, "-c", FRAME.format(body=body)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    assert process.stderr.readline() == b"here\n"
    return process


def filter_stage(where: str = "-", grace: float = 20) -> subprocess.Popen[bytes]:
    """Start a filter that copies."""
    return start(FILTER.format(where=where, grace=grace))


def pass_through(process: subprocess.Popen[bytes]) -> None:
    """See a line go through: what was sent to the process before it has been heard."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(LINE)
    process.stdin.flush()
    assert process.stdout.readline() == LINE


@pytest.mark.parametrize(
    ("signum", "code"),
    [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, -signal.SIGINT), (signal.SIGUSR1, 75)],
)
def test_a_filter_reads_on_to_the_end_of_input_then_ends_as_the_signal_says(signum: int, code: int) -> None:
    process = filter_stage()
    pass_through(process)
    process.send_signal(signum)
    pass_through(process)
    out, err = process.communicate(LINE * 3, timeout=10)
    assert (out, err, process.returncode) == (LINE * 3, b"", code)


def test_without_a_signal_the_end_of_input_is_the_normal_end() -> None:
    process = filter_stage()
    out, err = process.communicate(LINE + LINE[:-1], timeout=10)
    assert (out, err, process.returncode) == (LINE * 2, b"", 0)


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_the_second_signal_stops_at_once(second: int) -> None:
    process = filter_stage()
    process.send_signal(signal.SIGINT)
    pass_through(process)
    process.send_signal(second)
    assert process.wait(10) == -second
    process.communicate()


def test_the_end_of_grace_stops_at_once_by_the_first_signal() -> None:
    process = filter_stage(grace=0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == -signal.SIGTERM
    process.communicate()


def test_a_filter_whose_reader_has_gone_dies_of_sigpipe() -> None:
    process = filter_stage()
    pass_through(process)
    assert process.stdout is not None
    assert process.stdin is not None
    process.stdout.close()
    process.stdin.write(LINE)
    process.stdin.flush()
    assert process.wait(10) == -signal.SIGPIPE
    assert process.stderr is not None
    assert process.stderr.read() == b""


def test_a_filter_on_a_spool_stops_waiting_when_the_signal_comes(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path / "s")
    process = filter_stage(f"spool:{tmp_path}/s")
    writer.publish([LINE])
    assert process.stdout is not None
    assert process.stdout.readline() == LINE
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == -signal.SIGTERM
    process.communicate()
    assert not list((tmp_path / "s" / "cur").iterdir())


def test_a_trio_stage_sees_the_signal_as_an_event() -> None:
    process = start(TRIO.format(grace=20, then="pass"))
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=10)
    assert (out, err, process.returncode) == (b"15 True\n", b"", -signal.SIGTERM)


def test_a_trio_stage_is_stopped_at_once_by_the_second_signal() -> None:
    process = start(TRIO.format(grace=20, then="await trio.sleep_forever()"))
    process.send_signal(signal.SIGTERM)
    assert process.stdout is not None
    assert process.stdout.readline() == b"15 True\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == -signal.SIGINT
    process.communicate()


def test_a_trio_stage_that_stands_still_is_stopped_at_the_end_of_grace() -> None:
    process = start(TRIO.format(grace=0.05, then="import time; time.sleep(60)"))
    process.send_signal(signal.SIGUSR1)
    assert process.wait(10) == -signal.SIGUSR1
    process.communicate()


def test_a_gone_reader_starts_the_same_drain_and_a_signal_outranks_it() -> None:
    one = drain.FilterDrain()
    with pytest.raises(drain.ReaderGone) as gone, one:
        one.begin(signal.SIGPIPE)
        assert one.stopping
    assert gone.value.signum == signal.SIGPIPE
    two = drain.FilterDrain()
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(drain.EndedBySignal) as ended, two:
            two.begin(signal.SIGPIPE)
            os.kill(os.getpid(), signal.SIGTERM)
        assert ended.value.signum == signal.SIGTERM
    finally:
        for each in drain.STARTERS:
            signal.signal(each, signal.default_int_handler if each == signal.SIGINT else before)


def test_every_starting_signal_is_in_the_manual() -> None:
    told = " ".join(name for name, _ in drain.SIGNALS)
    assert all(signal.Signals(each).name in told for each in drain.STARTERS)


def test_a_drain_without_a_signal_puts_the_handlers_back() -> None:
    before = [signal.getsignal(each) for each in drain.STARTERS]
    with drain.FilterDrain():
        assert [signal.getsignal(each) for each in drain.STARTERS] != before
    assert [signal.getsignal(each) for each in drain.STARTERS] == before
