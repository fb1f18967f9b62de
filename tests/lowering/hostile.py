"""Files that nobody should have to survive, and the guard under which they are read."""

import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from simulo.errors import DescriptionError, LoweringError

MEMORY = 2 << 30
"""Most memory that a reader may ask for beyond what the process has."""

SECONDS = 30
"""Most processor time that a reader may take."""


@contextmanager
def guard() -> Iterator[None]:
    """Ends the test, not the machine, when a reader hangs or asks for memory without end."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()

    def hung(number: int, frame: object) -> None:
        raise TimeoutError(f"over {SECONDS} s of processor time")

    previous = signal.signal(signal.SIGVTALRM, hung)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (in_use + MEMORY, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)


def refusal(read: Callable[[], object], file: str, element: str, remedy: str) -> str:
    """The error that reading raises; it names the file, the element and what to do."""
    with guard(), pytest.raises((LoweringError, DescriptionError)) as caught:
        read()
    message = str(caught.value)
    for part, words in (("file", file), ("element", element), ("remedy", remedy)):
        assert words in message, f"no {part} {words!r} in: {message}"
    assert len(message) < 20_000
    return message


LAUGHS = (
    '<!DOCTYPE r [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY {name} "{10 * f"&{of};"}">' for of, name in zip("abcdefgh", "bcdefghi", strict=True))
    + "]>"
)
"""A document type whose last entity is a hundred million laughs."""


def sparse(path: Path, size: int, head: bytes = b"") -> Path:
    """A file of that size which takes no room on the disk: zeros after `head`."""
    with path.open("wb") as file:
        file.write(head)
        file.truncate(size)
    return path
