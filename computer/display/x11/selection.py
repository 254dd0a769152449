"""
X11 selections, both sides: serve what we own, read what others own.

Owns the protocol: conversions, transfers in pieces (INCR), who took what. Belongs to one
thread, that of its connection. Source: Inter-Client Communication Conventions, section 2.
"""

import select
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NewType

from Xlib import X, Xatom
from Xlib.protocol import event, request

from computer.display.x11.connection import XConnection

__all__ = ["Atom", "Content", "Data", "Delivery", "Selections", "text_content"]

Atom = NewType("Atom", int)

# Bytes in one property. A request holds at most 256 KiB.
MAX_DIRECT_BYTES = 131_072
CHUNK_BYTES = 65_536
# Bytes read from another owner's clipboard, over all its targets, and the number of those.
MAX_READ_BYTES = 16 * 1_048_576
MAX_TARGETS = 32
# Base of the resource ids of the server's own windows.
SERVER = 0
# Transfers going on at a time, and seconds after which one that stands still is forgotten.
MAX_TRANSFERS = 64
STALE_S = 10.0
# How much sooner a client that never deletes what it has read is taken to have read.
HOARDER_RATIO = 10
TEXT_TARGETS = ("UTF8_STRING", "text/plain;charset=utf-8", "text/plain", "TEXT", "STRING")
# Targets that are questions or commands, not content.
META_TARGETS = (
    "TARGETS", "TIMESTAMP", "MULTIPLE", "SAVE_TARGETS",
    "DELETE", "INSERT_SELECTION", "INSERT_PROPERTY", "INCR",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """A property's value: its type, 8, 16 or 32 bits, and bytes or numbers."""

    type: Atom
    format: int
    value: Any


Content = Mapping[Atom, Data]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A conversion that its requestor has read to the end; *client* is the base of its resource ids."""

    client: int
    selection: Atom
    target: Atom


@dataclass(slots=True, kw_only=True)
class _Transfer:
    """A value on its way to a requestor."""

    requestor: Any
    property: Atom
    data: Data
    delivery: Delivery
    rest: memoryview | None = None
    is_whole: bool = True
    touched: float = field(default_factory=time.monotonic)


class Selections:
    """
    Serves and reads selections on one connection.

    Attributes:
        deliveries: what was taken from us, oldest first; whoever counts clears it.
        touched: when somebody last asked us for something, by ``time.monotonic``.
        came_in_pieces: what was read last was too long for one property.
        longest_gap_s: the most that passed between two questions; whoever counts clears it.
    """

    def __init__(self, connection: XConnection) -> None:
        self._connection = connection
        root = connection.screen().root
        self.window = root.create_window(
            -10, -10, 1, 1, 0, X.CopyFromParent, event_mask=X.PropertyChangeMask, override_redirect=True
        )
        self._owned: dict[Atom, tuple[Content, int]] = {}
        self._transfers: dict[tuple[int, Atom], _Transfer] = {}
        self._meta = {self.atom(name) for name in META_TARGETS}
        self._slot = self.atom("_COMPUTER_TRANSFER")
        self.deliveries: list[Delivery] = []
        self.touched = 0.0
        self.longest_gap_s = 0.0
        self.came_in_pieces = False
        self._hoarders: set[int] = set()

    def atom(self, name: str) -> Atom:
        """Atom of a name."""
        return Atom(self._connection.intern_atom(name))

    def client_of(self, window: int) -> int:
        """Base of the resource ids of the client that made *window*; 0 is the server itself."""
        return int(window & ~self._connection.display.info.resource_id_mask & 0x1FFF_FFFF)

    def owner(self, selection: Atom) -> int:
        """Window that owns *selection*; 0 is none."""
        found: Any = self._connection.get_selection_owner(selection)
        return int(getattr(found, "id", found) or 0)

    def owned(self, selection: Atom) -> Content | None:
        """What we serve for *selection*; None when we don't own it."""
        entry = self._owned.get(selection)
        return entry[0] if entry is not None and self.owner(selection) == self.window.id else None

    @property
    def is_transferring(self) -> bool:
        """Whether something is on its way to a requestor."""
        return bool(self._transfers)

    def forget_transfers(self) -> None:
        """Count from here: what was handed over whole before is nobody's concern any more."""
        self.deliveries.clear()
        whole = [key for key, transfer in self._transfers.items() if transfer.is_whole]
        for key in whole:
            del self._transfers[key]

    def assume_read(self, grace_s: float) -> None:
        """
        Count as read what was handed over whole, *grace_s* ago.

        Tk never deletes what it has read, though the conventions want it to.
        """
        now = time.monotonic()
        for key, transfer in tuple(self._transfers.items()):
            client = transfer.delivery.client
            limit_s = grace_s / HOARDER_RATIO if client in self._hoarders else grace_s
            if transfer.is_whole and now - transfer.touched >= limit_s:
                del self._transfers[key]
                self._hoarders.add(client)
                self.deliveries.append(transfer.delivery)

    def own(self, selection: Atom, content: Content) -> bool:
        """Become the owner of *selection*; False when the server gave it to another."""
        stamp = self._server_time()
        self.window.set_selection_owner(selection, stamp)
        self._owned[selection] = (content, stamp)
        return self.owner(selection) == int(self.window.id)

    def disown(self, selection: Atom) -> None:
        """Leave *selection* without an owner, unless another has taken it."""
        if self.owned(selection) is not None:
            request.SetSelectionOwner(
                display=self._connection.display, window=X.NONE, selection=selection, time=X.CurrentTime
            )
        self._owned.pop(selection, None)
        self._connection.flush()

    def read(self, selection: Atom, target: Atom, limit_s: float) -> Data | None:
        """Ask the owner of *selection* for *target*; None when it refuses, is late or sends too much."""
        deadline = time.monotonic() + limit_s
        self.window.delete_property(self._slot)
        self.window.convert_selection(selection, target, self._slot, X.CurrentTime)
        answer = self.pump(lambda found: _answers(found, selection, target), deadline)
        if answer is None or answer.property == X.NONE:
            return None
        data = self._take_slot()
        self.came_in_pieces = data is not None and data.type == self.atom("INCR")
        if not self.came_in_pieces:
            return data
        return self._read_pieces(deadline)

    def read_all(self, selection: Atom, limit_s: float) -> Content | None:
        """Everything that the owner of *selection* offers; None when it does not answer in time."""
        deadline = time.monotonic() + limit_s
        offered = self.read(selection, self.atom("TARGETS"), limit_s)
        if offered is None or offered.format != 32:
            return None
        content: dict[Atom, Data] = {}
        size = 0
        targets = [Atom(int(number)) for number in offered.value if number not in self._meta]
        for target in targets[:MAX_TARGETS]:
            left = deadline - time.monotonic()
            data = self.read(selection, target, left) if left > 0 else None
            if data is not None and data.format == 8:
                size += len(data.value)
            if size > MAX_READ_BYTES:
                break
            if data is not None:
                content[target] = data
        return content

    def pump(self, wants: Callable[[Any], bool], deadline: float, *, wake: int | None = None) -> Any | None:  # noqa: ANN401  Xlib's events are typed as Any
        """
        Serve until an event that *wants* accepts, *deadline* or a byte on *wake*.

        Returns that event, or None. *wants* sees every event after it was served.
        """
        while True:
            # Writing reads as well: only after it is "nothing pending" the last word before a wait.
            self._connection.flush()
            while self._connection.pending_events():
                found = self._connection.next_event()
                self._serve(found)
                if wants(found):
                    return found
                self._connection.flush()
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            descriptors = [self._connection.fileno(), *([] if wake is None else [wake])]
            ready, _, _ = select.select(descriptors, [], [], left)
            if wake is not None and wake in ready:
                return None

    def _serve(self, found: Any) -> None:  # noqa: ANN401
        if found.type == X.SelectionRequest:
            self._answer(found)
        elif found.type == X.SelectionClear:
            # It may have been ours again by the time that this was sent.
            if self.owner(found.atom) != self.window.id:
                self._owned.pop(found.atom, None)
        elif found.type == X.PropertyNotify and found.state == X.PropertyDelete:
            self._advance(found.window.id, Atom(found.atom))

    def _answer(self, asked: Any) -> None:  # noqa: ANN401
        now = time.monotonic()
        self.longest_gap_s = max(self.longest_gap_s, now - self.touched)
        self.touched = now
        slot = asked.property or asked.target
        entry = self._owned.get(asked.selection)
        accepted = entry is not None and self._convert(asked, slot, *entry)
        reply = event.SelectionNotify(
            time=asked.time,
            requestor=asked.requestor,
            selection=asked.selection,
            target=asked.target,
            property=slot if accepted else X.NONE,
        )
        asked.requestor.send_event(reply)

    def _convert(self, asked: Any, slot: Atom, content: Content, stamp: int) -> bool:  # noqa: ANN401
        if asked.target == self.atom("TARGETS"):
            targets = [self.atom("TARGETS"), self.atom("TIMESTAMP"), *content]
            asked.requestor.change_property(slot, Xatom.ATOM, 32, targets)
            return True
        if asked.target == self.atom("TIMESTAMP"):
            asked.requestor.change_property(slot, Xatom.INTEGER, 32, [stamp])
            return True
        data = content.get(asked.target)
        self._forget_stale()
        if data is None or len(self._transfers) >= MAX_TRANSFERS:
            return False
        client = self.client_of(asked.requestor.id)
        delivery = Delivery(client=client, selection=asked.selection, target=asked.target)
        transfer = _Transfer(requestor=asked.requestor, property=slot, data=data, delivery=delivery)
        self._transfers[asked.requestor.id, slot] = transfer
        asked.requestor.change_attributes(event_mask=X.PropertyChangeMask)
        is_long = data.format == 8 and len(data.value) > MAX_DIRECT_BYTES
        if is_long and client == SERVER:
            # Xvnc asks for its viewers, and knows no transfers in pieces; its properties may be of any size.
            self._write_whole(asked.requestor, slot, data)
        elif is_long:
            transfer.rest, transfer.is_whole = memoryview(data.value), False
            asked.requestor.change_property(slot, self.atom("INCR"), 32, [len(data.value)])
        else:
            asked.requestor.change_property(slot, data.type, data.format, data.value)
        return True

    def _write_whole(self, requestor: Any, slot: Atom, data: Data) -> None:  # noqa: ANN401
        for start in range(0, len(data.value), MAX_DIRECT_BYTES):
            mode = X.PropModeAppend if start else X.PropModeReplace
            piece = bytes(data.value[start : start + MAX_DIRECT_BYTES])
            requestor.change_property(slot, data.type, 8, piece, mode)

    def _advance(self, window: int, slot: Atom) -> None:
        """The requestor has read what it was given last: give it the next piece, or be done."""
        transfer = self._transfers.get((window, slot))
        if transfer is None:
            return
        self.touched = transfer.touched = time.monotonic()
        if transfer.rest is None:
            del self._transfers[window, slot]
            self.deliveries.append(transfer.delivery)
            return
        piece = bytes(transfer.rest[:CHUNK_BYTES])
        # An empty piece tells the end; when that has been read too, so has everything.
        transfer.rest = transfer.rest[CHUNK_BYTES:] if piece else None
        transfer.requestor.change_property(slot, transfer.data.type, 8, piece)

    def _forget_stale(self) -> None:
        now = time.monotonic()
        for key, transfer in tuple(self._transfers.items()):
            if now - transfer.touched > STALE_S:
                del self._transfers[key]

    def _take_slot(self) -> Data | None:
        found = self.window.get_property(self._slot, X.AnyPropertyType, 0, MAX_READ_BYTES // 4, delete=True)
        if found is None:
            return None
        return Data(type=Atom(found.property_type), format=found.format, value=found.value)

    def _read_pieces(self, deadline: float) -> Data | None:
        pieces = bytearray()
        while True:
            if self.pump(self._is_new_piece, deadline) is None:
                return None
            data = self._take_slot()
            if data is None:
                continue
            if data.format != 8 or len(pieces) > MAX_READ_BYTES:
                return None
            if not data.value:
                return Data(type=data.type, format=8, value=bytes(pieces))
            pieces += data.value

    def _is_new_piece(self, found: Any) -> bool:  # noqa: ANN401
        return bool(
            found.type == X.PropertyNotify and found.atom == self._slot and found.state == X.PropertyNewValue
        )

    def _server_time(self) -> int:
        # The conventions want the time of an event, not "now"; an empty append gives one.
        slot = self.atom("_COMPUTER_TIME")
        self.window.change_property(slot, Xatom.INTEGER, 32, [], X.PropModeAppend)
        found = self.pump(
            lambda found: found.type == X.PropertyNotify and found.atom == slot, time.monotonic() + 1.0
        )
        return int(found.time) if found is not None else X.CurrentTime


def text_content(selections: Selections, text: str) -> Content:
    """Text in every form that applications ask for; Latin-1 only where it loses nothing."""
    encoded = text.encode()
    utf8 = Data(type=selections.atom("UTF8_STRING"), format=8, value=encoded)
    content = {selections.atom(name): utf8 for name in ("UTF8_STRING", "TEXT")}
    for name in ("text/plain;charset=utf-8", "text/plain"):
        content[selections.atom(name)] = Data(type=selections.atom(name), format=8, value=encoded)
    try:
        content[Atom(Xatom.STRING)] = Data(type=Atom(Xatom.STRING), format=8, value=text.encode("latin-1"))
    except UnicodeEncodeError:
        return content
    return content


def _answers(found: Any, selection: Atom, target: Atom) -> bool:  # noqa: ANN401
    return bool(found.type == X.SelectionNotify and found.selection == selection and found.target == target)
