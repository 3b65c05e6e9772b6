"""Is this URL certainly new?

A sieve in front of the exact store: Bloom filters in layers, the first for 2 M keys at 1 %, each later one 8 times as large,
so that it is small for a small crawl and grows without being rebuilt. Law 7: maybe() False means certainly new; True means
ask the exact store. A key is 16 bytes and already a good hash (core/urls.key), so it is its own hash value: nothing but the
bits needs saving. Called by the frontier.

A snapshot on disk is always older than the store. So keys carry a generation, and a start replays those of later ones:

  seen = Seen.load(path)                     # generation = the one after the snapshot's; 0 where there is none
  if trimmed >= seen.generation: ...         # the snapshot was lost: seen.add(every known key) instead of the next line
  seen.replay(keys of since_snapshot)        # all rows whose generation >= seen.generation

  new = [key for key in keys if not seen.maybe(key) or not store.has(key)]
  seen.add(new)                              # 1. the sieve
  store.commit(..., since_snapshot rows (seen.generation, key) for key in new)       # 2. the same generation
  if seen.is_due:                            # 3. between batches, never between 1 and 2
      snapshot = seen.freeze()               # from here on new keys carry the next generation
      thread: snapshot.write()               # then: drop rows with generation <= snapshot.generation, trimmed = that, one batch

`trimmed` (the highest generation whose rows were dropped, -1 at first) lives in the store. A crash between write and drop
only leaves rows that are replayed for nothing; a snapshot with keys the store never committed only costs false positives.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import msgspec
from rbloom import Bloom

from crawltool import limits
from crawltool.stores import atomic

SNAPSHOT_SHARE = 64  # of all keys: what a start replays
_RATE = 0.01
_LIST = "layers.json"


# Of C all through: no other thread can run inside Bloom.add, where save_bytes() would find the filter borrowed and raise.
_as_hash = partial(int.from_bytes, byteorder="little", signed=True)


class _Head(msgspec.Struct):
    """First line of a layer's file; the bits follow."""

    capacity: int
    keys: int
    crc32: int


class _List(msgspec.Struct):
    """layers.json, written after the layers it names: each file holds at least the keys of these generations."""

    generation: int
    layers: int
    version: int = 1


class _Layer:
    """One Bloom filter of a fixed capacity; `saved_keys` is what its file holds."""

    def __init__(self, capacity: int, bloom: Bloom | None = None, keys: int = 0) -> None:
        self.capacity, self.keys, self.saved_keys = capacity, keys, keys if bloom is not None else -1
        self.bloom = Bloom(capacity, _RATE, _as_hash) if bloom is None else bloom


class Snapshot:
    """The sieve with all keys added before freeze(). write() is blocking and made for a thread; the sieve may grow meanwhile."""

    def __init__(self, path: Path, generation: int, layers: list[_Layer]) -> None:
        self.generation = generation
        self.is_written = False
        self._path, self._layers = path, layers

    def write(self) -> None:
        """Make it durable. Raises DiskTrouble: then the earlier snapshot holds, and the next one has these keys too.

        Layers first, the list last: a layer newer than the list has more bits, which is never wrong; so the bits are
        copied here, once: 153 MB for the third layer. rbloom holds the interpreter while it copies (0.2 s), the rest is free.
        """
        with atomic.disk(self._path):
            self._path.mkdir(exist_ok=True)
        for number, layer in enumerate(self._layers):
            keys = layer.keys  # before the bits are copied: they hold these at least
            if keys != layer.saved_keys:
                bits = layer.bloom.save_bytes()
                head = msgspec.json.encode(_Head(layer.capacity, keys, zlib.crc32(bits)))
                atomic.write_file(self._path / _name(number), head, b"\n", bits)
                layer.saved_keys = keys
        atomic.write_file(self._path / _LIST, msgspec.json.encode(_List(self.generation, len(self._layers))))
        self.is_written = True


class Seen:
    """The sieve. Keys are 16 bytes. Not for several threads at once; a Snapshot may be written beside it."""

    def __init__(
        self,
        path: Path,
        *,
        first_keys: int = limits.SEEN_LAYER_KEYS,
        growth: int = limits.SEEN_GROWTH,
        snapshot_keys: int = limits.SEEN_SNAPSHOT_KEYS,
    ) -> None:
        self.generation = 0  # of the keys that are added now
        self._path, self._growth, self._snapshot_keys = path, growth, snapshot_keys
        self._set_layers([_Layer(first_keys)])
        self._fresh = 0  # keys since the last freeze

    @classmethod
    def load(cls, path: Path, **sizes: int) -> Seen:
        """Read the snapshot at a path; an empty sieve of generation 0 when there is none, or it is damaged."""
        seen = cls(path, **sizes)
        try:
            listed = msgspec.json.decode((path / _LIST).read_bytes(), type=_List)
            layers = [_read(path / _name(number)) for number in range(listed.layers)]
        except (FileNotFoundError, ValueError):
            return seen
        if listed.version == 1 and layers:
            seen._set_layers(layers)
            seen.generation = listed.generation + 1
        return seen

    def _set_layers(self, layers: list[_Layer]) -> None:
        self._layers = layers
        self._blooms = [layer.bloom for layer in reversed(layers)]  # the largest, which knows most, first

    def maybe(self, key: bytes) -> bool:
        """Tell whether a key may have been added: False is certain."""
        for bloom in self._blooms:  # noqa: SIM110 - any() with a generator takes twice as long
            if key in bloom:
                return True
        return False

    def add(self, keys: Iterable[bytes]) -> None:
        """Add keys; one that is in already (or seems to be, which serves as well) takes no room."""
        for key in keys:
            if not self.maybe(key):
                self.add_new(key)

    def replay(self, keys: Sequence[bytes]) -> None:
        """Add keys of which hardly any is in, at a third of the time; one that is in takes room all the same."""
        while keys:
            layer = self._newest()
            some = keys[: layer.capacity - layer.keys]
            layer.bloom.update(some)
            layer.keys += len(some)
            self._fresh += len(some)
            keys = keys[len(some) :]

    def add_new(self, key: bytes) -> None:
        """Add a key that maybe() just called new."""
        layer = self._newest()
        layer.bloom.add(key)
        layer.keys += 1
        self._fresh += 1

    def _newest(self) -> _Layer:
        """Give the layer that takes new keys; a full one is followed by a larger one."""
        layer = self._layers[-1]
        if layer.keys >= layer.capacity:
            layer = _Layer(layer.capacity * self._growth)
            self._layers.append(layer)
            self._blooms.insert(0, layer.bloom)
        return layer

    def __len__(self) -> int:
        return sum(layer.keys for layer in self._layers)

    @property
    def size_bytes(self) -> int:
        """Tell the memory of all layers."""
        return sum(layer.bloom.size_in_bits // 8 for layer in self._layers)

    @property
    def is_due(self) -> bool:
        """Tell whether enough keys are new for a snapshot: a share of all, or the whole would be written too often.

        The caller writes one snapshot at a time.
        """
        return self._fresh >= max(self._snapshot_keys, len(self) // SNAPSHOT_SHARE)

    def freeze(self) -> Snapshot:
        """Begin a snapshot: it will hold all keys added until now; keys added from now on belong to the next generation."""
        snapshot = Snapshot(self._path, self.generation, list(self._layers))
        self.generation += 1
        self._fresh = 0
        return snapshot


def _name(number: int) -> str:
    return f"layer-{number:02d}.bloom"


def _read(path: Path) -> _Layer:
    """Read a layer. Raises ValueError when the file is not what was written."""
    with path.open("rb") as file:
        line, bits = file.readline(), file.read()
    head = msgspec.json.decode(line, type=_Head)
    if zlib.crc32(bits) != head.crc32:
        raise ValueError(f"{path}: checksum")
    return _Layer(head.capacity, Bloom.load_bytes(bits, _as_hash), head.keys)
