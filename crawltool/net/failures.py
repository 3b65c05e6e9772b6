"""Which verdict word does a failed exchange get?

libcurl's error codes (libcurl-errors(3)) and the system's errno, told apart by whose fault they are: the asked side's,
or this machine's. Pure. Called by net/handle.py when no complete answer came.
"""

from __future__ import annotations

import errno
import os

COULDNT_RESOLVE_PROXY, COULDNT_RESOLVE_HOST, COULDNT_CONNECT, PROXY_REFUSED = 5, 6, 7, 97
PARTIAL_FILE, GOT_NOTHING, SEND_ERROR, RECV_ERROR = 18, 52, 55, 56

NO_CONNECTION = frozenset({COULDNT_RESOLVE_PROXY, COULDNT_RESOLVE_HOST, COULDNT_CONNECT, PROXY_REFUSED})
LOST_CONNECTION = frozenset({PARTIAL_FILE, GOT_NOTHING, SEND_ERROR, RECV_ERROR})
TLS_ERRORS = frozenset({35, 51, 53, 54, 58, 59, 60, 64, 66, 77, 80, 82, 83, 90, 91, 98})
OWN_TROUBLE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL})
OWN_TROUBLE_IS = "this machine: "  # begins the reason of what is given back because this machine lacks something
REASON_CHARS_MAX = 300


def why_no_answer(code: int, message: str, number: int, is_asked: bool, scheme: str) -> tuple[str, str]:
    """Give the error word and one line of reason.

    `code` and `message` are libcurl's, `number` is the errno it met (0: none), `is_asked` says that the request was sent.
    `returned` means that this machine lacks ports or memory: the asked host has no part in it.
    """
    if not code:
        return "unreachable", "closed inside the header block"
    if code in NO_CONNECTION:
        if number in OWN_TROUBLE:
            return "returned", f"{OWN_TROUBLE_IS}{os.strerror(number)}"
        return "unreachable", os.strerror(number).lower() if number else one_line(message)
    if code in TLS_ERRORS:
        return "tls_error", one_line(message)
    if code in LOST_CONNECTION:
        is_handshake = scheme == "https" and not is_asked  # connected, but lost before the request could be sent
        return "tls_error" if is_handshake else "unreachable", one_line(message)
    return "malformed", one_line(message) or f"error {code} of libcurl"  # a line beyond its own limit ends without words


def one_line(message: str) -> str:
    """Make a message fit a record: one line, bounded, and text whatever bytes of the answer it quotes."""
    if not message.isascii():  # pycurl hands odd bytes through as surrogates, which no record can hold
        message = message.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return " ".join(message.split())[:REASON_CHARS_MAX]
