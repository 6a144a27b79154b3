"""Events of a torch-profiler JSON, read in pieces so that memory does not grow with the file.

A piece is cut behind an event, decoded by msgspec in one go, and dropped. That a piece decodes
as a whole proves that the cut was right: JSON up to the end of a complete element parses in
one way only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

Event = TypeVar("Event")

PIECE_BYTES: Final = 1 << 20  # its records stay in the cache: a quarter faster than 4 MiB
MAX_BORDER_BYTES: Final = 64 << 20  # of the header, the footer or one event
MAX_ATTEMPTS: Final = 16  # at a cut or a key, so that a hostile name costs no quadratic time

_EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_BETWEEN_EVENTS = re.compile(rb"\}\s*,\s*\{")
_MALFORMED_AT = re.compile(r"\(byte (\d+)\)")
_WHITESPACE: Final = b" \t\r\n"


class JsonFaultError(Exception):
    """The bytes are not the JSON of a trace; the text says what was seen."""


class ByteSource(Protocol):
    """A file opened for reading bytes, plain or decompressing."""

    def read(self, size: int, /) -> bytes:
        """Read up to ``size`` bytes; empty at the end."""
        ...


class EventPieces(Generic[Event]):
    """Iterate over lists of events; ``header`` is complete when the iteration is over.

    Attributes:
        header: The file's keys beside ``traceEvents``; empty for a bare list of events.
    """

    def __init__(
        self, source: ByteSource, decoder: msgspec.json.Decoder[list[Event]], *, piece_bytes: int
    ) -> None:
        self.header: dict[str, Any] = {}
        self.decoder = decoder
        self._source = source
        self._piece_bytes = piece_bytes
        self._bare_list = False

    def __iter__(self) -> Iterator[list[Event]]:
        pending = self._read_header()
        while True:
            fresh = self._source.read(self._piece_bytes)
            pending += fresh
            if not fresh:
                yield self._last_piece(pending)
                return
            events, pending, ended = self._piece(pending)
            if events:
                yield events
            if ended:
                self._read_footer(pending)
                return

    def _read_header(self) -> bytes:
        """Read up to the first event and return the bytes behind the opening bracket."""
        head = b""
        while True:
            fresh = self._source.read(self._piece_bytes)
            head += fresh
            stripped = head.lstrip(_WHITESPACE)
            if stripped.startswith(b"["):
                self._bare_list = True
                return stripped[1:]
            if stripped and not stripped.startswith(b"{"):
                raise JsonFaultError(f"a file that begins with {stripped[:16]!r}, no JSON object")
            for match in islice(_EVENTS_KEY.finditer(head), MAX_ATTEMPTS):
                header = _object_or_none(head[: match.end()] + b"]}")
                if header is not None:
                    del header["traceEvents"]
                    self.header.update(header)
                    return head[match.end() :]
            if not fresh or len(head) > MAX_BORDER_BYTES:
                raise JsonFaultError("JSON without a list named traceEvents at its top level")

    def _piece(self, pending: bytes) -> tuple[list[Event], bytes, bool]:
        """Decode as many whole events as there are: events, rest, whether the list ended."""
        for cut in islice(_cuts_from_behind(pending), MAX_ATTEMPTS):
            text = b"[" + pending[: cut + 1] + b"]"
            try:
                return self.decoder.decode(text), pending[_next_event(pending, cut) :], False
            except msgspec.ValidationError:
                raise
            except msgspec.DecodeError as error:
                list_end = _list_end(error, text)
                if list_end is not None:
                    events = self.decoder.decode(text[:list_end])
                    return events, pending[list_end - 1 :], True
                if not _is_cut_inside(error, text):
                    raise
        if len(pending) > MAX_BORDER_BYTES:
            raise JsonFaultError(f"one event of more than {MAX_BORDER_BYTES} bytes")
        return [], pending, False

    def _last_piece(self, pending: bytes) -> list[Event]:
        text = b"[" + pending
        try:
            events = self.decoder.decode(text)
            list_end = len(text)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError as error:
            end = _list_end(error, text)
            if end is None:
                raise
            list_end = end
            events = self.decoder.decode(text[:list_end])
        self._read_footer(text[list_end:])
        return events

    def _read_footer(self, footer: bytes) -> None:
        while len(footer) <= MAX_BORDER_BYTES:
            fresh = self._source.read(self._piece_bytes)
            if not fresh:
                break
            footer += fresh
        footer = footer.strip(_WHITESPACE)
        if self._bare_list:
            if footer:
                raise JsonFaultError(f"{footer[:16]!r} behind the list of events")
            return
        keys = _object_or_none(b'{"":0' + footer)
        if keys is None:
            raise JsonFaultError("a list of events that no closing brace follows: the file was cut")
        del keys[""]
        self.header.update(keys)


def _object_or_none(text: bytes) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError:
        return None


def _cuts_from_behind(pending: bytes) -> Iterator[int]:
    """Offsets of closing braces that may end an event, last first."""
    position = len(pending)
    while (position := pending.rfind(b"}", 0, position)) >= 0:
        if _BETWEEN_EVENTS.match(pending, position):
            yield position


def _next_event(pending: bytes, cut: int) -> int:
    return pending.index(b",", cut) + 1


def _list_end(error: msgspec.DecodeError, text: bytes) -> int | None:
    """Offset behind the bracket that ends the list, when the text goes on behind it."""
    if "trailing characters" not in str(error):
        return None
    position = _position(error, text)
    # msgspec skips whitespace before it complains
    return text.rindex(b"]", 0, position) + 1


def _is_cut_inside(error: msgspec.DecodeError, text: bytes) -> bool:
    """Whether the text failed only because it was cut within an event."""
    return "truncated" in str(error) or _position(error, text) >= len(text) - 1


def _position(error: msgspec.DecodeError, text: bytes) -> int:
    match = _MALFORMED_AT.search(str(error))
    return int(match[1]) if match else len(text)
