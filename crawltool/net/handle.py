"""What does one libcurl handle do, from a Request to an Exchange?

With net/engine.py the only file that imports pycurl. The callbacks record and return: pycurl swallows what they
raise, so a refusal sets a field and aborts by return value. Options that never change are set once per handle; handles are
used again. Law 5: libcurl repeats a request when a reused connection died; the second call of PREREQFUNCTION aborts that.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import pycurl
import trio

from crawltool import limits
from crawltool.errors import DiskTrouble
from crawltool.net import descriptors, failures, guard
from crawltool.net.asking import EngineSettings, Exchange, HeaderList, Request, parse_headers, request_lines
from crawltool.net.body import Body, BodyMemory
from crawltool.net.kept import KeptSockets

RECEIVE_BYTES = 64 * limits.KIB  # libcurl's read buffer: a 40 KB page is one callback


@dataclass(slots=True)
class Shared:
    """What the handles of one engine have in common."""

    settings: EngineSettings
    ca_file: str
    memory: BodyMemory
    pins: list[str]  # libcurl's RESOLVE entries: the proxy's address
    kept: KeptSockets
    asked: list[Handle] = field(default_factory=list)  # requests just sent, noted by callbacks for the driver


class Handle:
    """A reusable libcurl easy handle and the facts of the exchange it carries now."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._settings = shared.settings
        self._set: dict[int, object] = {}  # options in force, so that only changes are set
        self._no_body = self.body = Body(shared.memory)
        self.easy = easy = pycurl.Curl()
        easy.handle = self
        self.task: trio.lowlevel.Task | None = None  # parked until the end
        self.serial = 0
        self.is_orphaned = False  # the engine was closed under it
        self._set_once()

    def _set_once(self) -> None:
        easy = self.easy
        for option, value in (
            (pycurl.NOSIGNAL, 1),
            (pycurl.PATH_AS_IS, 1),
            (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1),
            (pycurl.FOLLOWLOCATION, 0),
            (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
            (pycurl.REDIR_PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
            (pycurl.HTTP_CONTENT_DECODING, 0),
            (pycurl.HTTP09_ALLOWED, 0),
            (pycurl.BUFFERSIZE, RECEIVE_BYTES),
            (pycurl.PROXY, self._settings.proxy),
            (pycurl.NOPROXY, ""),
            (pycurl.PROXYHEADER, ["Proxy-Connection:"]),  # the request's own fields stay out of CONNECT
            (pycurl.CAINFO, self._shared.ca_file),
            (pycurl.HEADERFUNCTION, self._on_header),
            (pycurl.WRITEFUNCTION, self._on_body),
            (pycurl.OPENSOCKETFUNCTION, self._on_open),
            (pycurl.PREREQFUNCTION, self._on_request),
        ):
            easy.setopt(option, value)
        if self._shared.pins:
            easy.setopt(pycurl.RESOLVE, self._shared.pins)

    def _let(self, option: int, value: object) -> None:
        if self._set.get(option) != value:
            self.easy.setopt(option, value)
            self._set[option] = value

    def begin(self, request: Request, fresh: bool = False) -> str | None:
        """Forget the last exchange and prepare the next, on a `fresh` connection if so; a string says why that cannot be."""
        lines = request_lines(request, bool(self._settings.proxy))
        if isinstance(lines, str):
            return lines
        self.request = request
        self.request_bytes, target, headers = lines
        self.started = time.monotonic()
        self.lines: list[bytes] = []
        self.headers: HeaderList = []  # read early only where `want` asks for them
        self.header_size = 0
        self.is_whole = False  # the final header block is complete
        self.body = Body(self._shared.memory, self._settings.body_dir)
        self.cap = -1  # of the body, in bytes; -1: not decided
        self.wanted = True
        self.stopped: str | None = None  # length | skip | headers | fault: why we stopped libcurl
        self.blocked: str | None = None
        self.fault: BaseException | None = None
        self.is_asked = False  # the request was sent, or is about to be
        self.is_stale = False  # the kept connection was seen closed: nothing was sent
        self.is_repeat = False  # libcurl wanted to send it again, and was stopped
        self.peer_ip: str | None = None
        self.ended = self.started  # set, with libcurl's code and message, when it is over
        self.code = 0
        self.message = ""
        self.is_first_byte_late = False
        self._set_request(request, target, headers)
        self._let(pycurl.FRESH_CONNECT, fresh or not request.keep)
        return None

    def _set_request(self, request: Request, target: str, headers: list[str]) -> None:
        host = f"[{request.host}]" if ":" in request.host else request.host
        let = self._let
        let(pycurl.URL, f"{request.scheme}://{host}:{request.port}/")  # the path travels in REQUEST_TARGET alone
        let(pycurl.REQUEST_TARGET, target)
        let(pycurl.HTTPHEADER, headers)
        if not self._settings.proxy:  # with a proxy it would force a tunnel; there the proxy resolves
            address = f"[{request.address}]" if ":" in request.address else request.address
            let(pycurl.CONNECT_TO, [f"::{address}:{request.connect_port or request.port}"])
        let(pycurl.NOBODY, request.method == "HEAD")
        let(pycurl.FORBID_REUSE, not request.keep)
        let(pycurl.CONNECTTIMEOUT_MS, max(1, int(request.timeout_connect_s * 1000)))
        let(pycurl.TIMEOUT_MS, max(1, int(request.timeout_total_s * 1000)))

    # Callbacks of libcurl: they record and return.

    def _on_open(self, purpose: int, where: tuple[int, int, int, tuple[object, ...]]) -> object:
        family, kind, protocol, address = where
        if self.is_asked:
            self.is_repeat = True  # not even a connection is made for a request that was sent
            return pycurl.SOCKET_BAD
        try:
            if not self._settings.proxy:
                host = str(address[0])
                self.blocked = guard.judge(host, self.request.typed, self._settings.allow_nets)
                if self.blocked is not None:
                    return pycurl.SOCKET_BAD
            return descriptors.open_socket(family, kind, protocol)
        except OSError as error:
            self.fault = error
            return pycurl.SOCKET_BAD

    def _on_request(self, peer_ip: str, local_ip: str, peer_port: int, local_port: int) -> int:
        if self.is_asked:
            self.is_repeat = True
            return int(pycurl.PREREQFUNC_ABORT)
        if self._shared.kept.is_stale(local_ip, local_port):
            self.is_stale = True
            return int(pycurl.PREREQFUNC_ABORT)
        self.is_asked = True
        self._shared.asked.append(self)
        self.peer_ip = peer_ip
        return int(pycurl.PREREQFUNC_OK)

    def _on_header(self, line: bytes) -> int | None:
        self.header_size += len(line)
        if self.header_size > limits.HEADER_BYTES_MAX:
            self.stopped = "headers"
            return 0
        if self.is_whole:
            if not (self._settings.proxy and line.startswith(b"HTTP/") and self.cap < 0):
                return None  # a trailer field: it is no part of the header block
            self.lines.clear()  # what came was the proxy's answer to CONNECT
            self.is_whole = False
        self.lines.append(line)
        if len(line) <= 2 and not line.strip():
            if _status(self.lines[0]) < 200:
                self.lines.clear()
            else:
                self.is_whole = True
        return None

    def _on_body(self, chunk: bytes) -> int | None:
        try:
            if self.cap < 0:
                self._decide()
            room = self.cap - self.body.size
            if len(chunk) > room:
                chunk = chunk[:room]
                self.stopped = "length" if self.wanted else "skip"
            self.body.add(chunk)
        except Exception as error:  # raised again in exchange(): pycurl would swallow it
            self.fault = error
            self.stopped = "fault"
        return None if self.stopped is None else 0

    def _decide(self) -> None:
        """Ask `want` once and set how much of the body is kept."""
        request = self.request
        self.cap = request.max_body_bytes
        if request.want is not None and self.is_whole:  # bytes may follow a 101 that nobody asked for: no answer yet
            self.headers = parse_headers(self.lines[1:])
            self.wanted = bool(request.want(_status(self.lines[0]), self.headers))
            if not self.wanted:
                self.cap = min(self.cap, limits.SNIFF_BYTES)

    # The end.

    def note_kept(self) -> None:
        """Remember the connection if it is kept; called before the multi lets go of the handle."""
        if self.request.keep:
            get = self.easy.getinfo
            self._shared.kept.note(get(pycurl.LOCAL_IP), get(pycurl.LOCAL_PORT), get(pycurl.ACTIVESOCKET))

    def exchange(self) -> Exchange:
        """Tell what came of it, after libcurl has let go of the handle. Raises DiskTrouble, or what `want` raised."""
        if self.is_whole and self.cap < 0:
            try:
                self._decide()
            except Exception as error:  # one way out for both places that ask `want`
                self.fault, self.stopped = error, "fault"
        if self.stopped == "fault":
            self.body.close()
            assert self.fault is not None
            if isinstance(self.fault, OSError):
                raise DiskTrouble(f"body file: {self.fault}") from self.fault
            raise self.fault
        made = Exchange(self.started, self.ended - self.started, request_bytes=self.request_bytes, peer_ip=self.peer_ip)
        made.wire_bytes = self.header_size + self.body.size
        made.timings = self._timings()
        made.reused = self.is_asked and not self.easy.getinfo(pycurl.NUM_CONNECTS)
        if self.is_whole:
            made.status = _status(self.lines[0])
            made.header_bytes = b"".join(self.lines)
            made.headers = self.headers or parse_headers(self.lines[1:])
            made.wanted = self.wanted
        made.body_bytes = self.body.size
        made.body, self.body = self.body, self._no_body  # the handle must not keep alive what the caller drops
        if self.code or not self.is_whole:
            self._explain(made)
        return made

    def _timings(self) -> dict[str, float]:
        timings = {}
        for name, info in _TIMES:
            seconds = self.easy.getinfo(info)
            if seconds > 0:
                timings[name] = round(seconds, 6)
        return timings

    def _explain(self, made: Exchange) -> None:
        """Set error, reason and truncated from libcurl's code and from what the callbacks recorded."""
        if self.stopped == "skip":
            made.truncated = "length"
        elif self.stopped == "length":
            made.truncated, made.error, made.reason = "length", "too_large", f"body over {self.request.max_body_bytes} bytes"
        elif self.is_first_byte_late:
            made.error, made.reason = "timeout", "first_byte"
        elif self.code == pycurl.E_OPERATION_TIMEDOUT:
            over = made.elapsed_s * 1000 >= int(self.request.timeout_total_s * 1000) - 2
            made.error, made.reason = "timeout", "total" if self.is_asked or over else "connect"
            made.truncated = "time" if self.is_whole else None
        elif self.is_whole:
            made.truncated = "disconnect" if self.code in failures.LOST_CONNECTION else "unspecified"
            made.reason = failures.one_line(self.message)
        elif self.blocked is not None:
            made.error, made.reason = "blocked_address", self.blocked
        elif isinstance(self.fault, OSError):
            made.error, made.reason = "returned", f"{failures.OWN_TROUBLE_IS}{self.fault.strerror}"
        elif self.stopped == "headers":
            made.error, made.reason = "malformed", f"header block over {limits.HEADER_BYTES_MAX} bytes"
        elif self.is_repeat:
            made.error, made.reason = "returned", "the kept connection was closed before an answer"  # no fault of the host
        elif self._settings.proxy and self.code in failures.NO_CONNECTION:
            made.error, made.reason = "returned", f"the proxy cannot be reached: {failures.one_line(self.message)}"
        else:
            number = self.easy.getinfo(pycurl.OS_ERRNO)
            made.error, made.reason = failures.why_no_answer(self.code, self.message, number, self.is_asked, self.request.scheme)


_TIMES = (("connect", pycurl.CONNECT_TIME), ("tls", pycurl.APPCONNECT_TIME), ("first_byte", pycurl.STARTTRANSFER_TIME))


def _status(line: bytes) -> int:
    """Read the number in a status line that libcurl has accepted; 0 when there is none."""
    parts = line.split(None, 2)
    return int(parts[1]) if len(parts) > 1 and parts[1].isdigit() and len(parts[1]) == 3 else 0
