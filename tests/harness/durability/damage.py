"""Damages the files of a stopped broker: one place in a file, or the whole file."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

SECTOR = 512

# Alignment of the journal's batches; batches in these tests are no longer than that.
BATCH = 4096

# The magic bytes of a journal file, and the offset of its first record's number.
MAGIC = b"imorijnl"
FIRST = slice(36, 44)

# The most bytes before a message's body for that message alone: record, batch, headers.
HEAD = 1024


@dataclass(frozen=True)
class Damage:
    """Damage to a file: the bytes from `begin` to `end` were altered or removed.

    A folder name, which ends with a slash, stands for all files in it.
    """

    file: str
    how: str
    begin: int
    end: int

    def __str__(self) -> str:
        return f"{self.how} of `{self.file}` at {self.begin}"

    def touches(self, file: str, begin: int, end: int) -> bool:
        """Returns whether it touches a file between `begin` and `end`."""
        is_there = file.startswith(self.file) if self.file.endswith("/") else file == self.file
        return is_there and self.begin < end and begin < self.end


def flip(data: bytearray, place: int, chance: random.Random) -> int:
    """Flips one bit."""
    data[place] ^= 1 << chance.randrange(8)
    return place + 1


def overwrite(data: bytearray, place: int, chance: random.Random) -> int:
    """Overwrites up to 16 bytes."""
    end = min(len(data), place + chance.randint(1, 16))
    data[place:end] = bytes(byte ^ chance.randint(1, 255) for byte in data[place:end])
    return end


def zero(data: bytearray, place: int, chance: random.Random) -> int:
    """Zeroes a sector."""
    begin = place - place % SECTOR
    end = min(len(data), begin + SECTOR)
    data[begin:end] = bytes(end - begin)
    return end


def misplace(data: bytearray, place: int, chance: random.Random) -> int:
    """Overwrites a sector with another one of the same file."""
    begin = place - place % SECTOR
    end = min(len(data), begin + SECTOR)
    other = chance.randrange(max(1, len(data) // SECTOR)) * SECTOR
    data[begin:end] = data[other : other + end - begin].ljust(end - begin, b"\0")
    return end


def truncate(data: bytearray, place: int, chance: random.Random) -> int:
    """Truncates the file at this place."""
    end = len(data)
    del data[place:]
    return end


Deed = Callable[[bytearray, int, random.Random], int]

# Relative frequency of each kind of damage.
WITHIN: Mapping[Deed, int] = {flip: 6, overwrite: 2, zero: 2, misplace: 1}
DEEDS: Mapping[Deed, int] = {**WITHIN, truncate: 1}


class Store:
    """A data folder; damage is done to copies."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        self.files = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
        # The offsets of each file's blocks that are not all zeros.
        self.blocks = {
            name: [at for at in range(0, len(data), SECTOR) if any(data[at : at + SECTOR])]
            for name, data in self.files.items()
            if data
        }

    def damaged(self, copy: Path, seed: int, part: str, deeds: Mapping[Deed, int]) -> Damage:
        """Copies the folder and damages one place in a part, chosen by the seed."""
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
        """Copies the folder without one file of a part, or without the whole part."""
        names = [name for name in self.blocks if name.startswith(part)]
        name = part if is_whole else random.Random(seed).choice(names)
        shutil.copytree(self.folder, copy)
        if is_whole:
            shutil.rmtree(copy / part)
        else:
            (copy / name).unlink()
        return Damage(name, "loss", 0, max(len(data) for data in self.files.values()))

    def places(self, body: bytes) -> Iterator[tuple[str, int, int]]:
        """Yields the files that contain a message, with begin and end."""
        for name, data in self.files.items():
            at = data.find(body)
            while at >= 0:
                yield name, at - HEAD, at + len(body)
                at = data.find(body, at + 1)

    def last_written(self) -> str | None:
        """Returns the journal file written last, which has the highest numbers."""
        firsts = {
            name: int.from_bytes(data[FIRST], "little")
            for name, data in self.files.items()
            if name.startswith("journal/") and data.startswith(MAGIC)
        }
        return max(firsts, key=lambda name: firsts[name], default=None)

    def is_in_last_batch(self, damage: Damage) -> bool:
        """Returns whether the damage is in the last batch of the journal."""
        last = self.last_written()
        blocks = self.blocks.get(last, []) if last else []
        if not last or not blocks or blocks[-1] < BATCH:
            return False
        begin = blocks[-1] - blocks[-1] % BATCH
        return damage.touches(last, begin, begin + BATCH)

    def may_cost(self, damage: Damage, body: bytes) -> bool:
        """Returns whether the damage may cost a message."""
        return any(damage.touches(name, begin, end) for name, begin, end in self.places(body))
