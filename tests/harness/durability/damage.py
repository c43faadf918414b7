"""Damage to the files of a broker that is not running: one place of one file, or all of it."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

SECTOR = 512

# What each batch of the journal is aligned to; those of these tests are no longer.
BATCH = 4096

# The first bytes of a file of the journal, and where the number of its first record stands in them.
MAGIC = b"imorijnl"
FIRST = slice(36, 44)

# What is written before the bytes of a message for it alone: heads of record and batch, headers.
HEAD = 1024


@dataclass(frozen=True)
class Damage:
    """What is done to a file: bytes from `begin` to `end` are others, or gone.

    The name of a folder, which ends with a slash, means all files in it.
    """

    file: str
    how: str
    begin: int
    end: int

    def __str__(self) -> str:
        return f"{self.how} of `{self.file}` at {self.begin}"

    def touches(self, file: str, begin: int, end: int) -> bool:
        """Whether it is in what stands in a file from `begin` to `end`."""
        is_there = file.startswith(self.file) if self.file.endswith("/") else file == self.file
        return is_there and self.begin < end and begin < self.end


def flip(data: bytearray, place: int, chance: random.Random) -> int:
    """One bit."""
    data[place] ^= 1 << chance.randrange(8)
    return place + 1


def overwrite(data: bytearray, place: int, chance: random.Random) -> int:
    """Up to 16 bytes with others."""
    end = min(len(data), place + chance.randint(1, 16))
    data[place:end] = bytes(byte ^ chance.randint(1, 255) for byte in data[place:end])
    return end


def zero(data: bytearray, place: int, chance: random.Random) -> int:
    """A sector with zeros."""
    begin = place - place % SECTOR
    end = min(len(data), begin + SECTOR)
    data[begin:end] = bytes(end - begin)
    return end


def misplace(data: bytearray, place: int, chance: random.Random) -> int:
    """A sector with another one of the file."""
    begin = place - place % SECTOR
    end = min(len(data), begin + SECTOR)
    other = chance.randrange(max(1, len(data) // SECTOR)) * SECTOR
    data[begin:end] = data[other : other + end - begin].ljust(end - begin, b"\0")
    return end


def truncate(data: bytearray, place: int, chance: random.Random) -> int:
    """All from here on is gone."""
    end = len(data)
    del data[place:]
    return end


Deed = Callable[[bytearray, int, random.Random], int]

# How often each is done.
WITHIN: Mapping[Deed, int] = {flip: 6, overwrite: 2, zero: 2, misplace: 1}
DEEDS: Mapping[Deed, int] = {**WITHIN, truncate: 1}


class Store:
    """A data folder, of which copies are damaged."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        self.files = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
        # The blocks of each file in which there is something.
        self.blocks = {
            name: [at for at in range(0, len(data), SECTOR) if any(data[at : at + SECTOR])]
            for name, data in self.files.items()
            if data
        }

    def damaged(self, copy: Path, seed: int, part: str, deeds: Mapping[Deed, int]) -> Damage:
        """Copies the folder and damages one place of a part that the seed chooses."""
        chance = random.Random(seed)
        names = [name for name in self.blocks if name.startswith(part)]
        name = chance.choice(names)
        data = bytearray(self.files[name])
        deed = chance.choices(list(deeds), list(deeds.values()))[0]
        place = chance.randrange(len(data))
        if self.blocks[name] and chance.random() < 0.9:
            block = chance.choice(self.blocks[name])
            place = min(len(data) - 1, block + chance.randrange(SECTOR))
        begin = place - place % SECTOR if deed in (zero, misplace) else place
        end = deed(data, place, chance)
        shutil.copytree(self.folder, copy)
        (copy / name).write_bytes(data)
        return Damage(name, deed.__name__, begin, end)

    def without(self, copy: Path, seed: int, part: str, *, is_whole: bool = False) -> Damage:
        """Copies the folder without one file of a part, or without a part that is a folder."""
        names = [name for name in self.blocks if name.startswith(part)]
        name = part if is_whole else random.Random(seed).choice(names)
        shutil.copytree(self.folder, copy)
        if is_whole:
            shutil.rmtree(copy / part)
        else:
            (copy / name).unlink()
        return Damage(name, "loss", 0, max(len(data) for data in self.files.values()))

    def places(self, body: bytes) -> Iterator[tuple[str, int, int]]:
        """The files in which a message stands, and from where to where."""
        for name, data in self.files.items():
            at = data.find(body)
            while at >= 0:
                yield name, at - HEAD, at + len(body)
                at = data.find(body, at + 1)

    def last_written(self) -> str | None:
        """The file of the journal that was written to last: that of the highest numbers."""
        firsts = {
            name: int.from_bytes(data[FIRST], "little")
            for name, data in self.files.items()
            if name.startswith("journal/") and data.startswith(MAGIC)
        }
        return max(firsts, key=lambda name: firsts[name], default=None)

    def is_in_last_batch(self, damage: Damage) -> bool:
        """Whether some damage is in the last batch of all of the journal."""
        last = self.last_written()
        blocks = self.blocks.get(last, []) if last else []
        if not last or not blocks or blocks[-1] < BATCH:
            return False
        begin = blocks[-1] - blocks[-1] % BATCH
        return damage.touches(last, begin, begin + BATCH)

    def may_cost(self, damage: Damage, body: bytes) -> bool:
        """Whether a message may be lost by some damage."""
        return any(damage.touches(name, begin, end) for name, begin, end in self.places(body))
