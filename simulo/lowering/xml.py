"""XML files from anybody: read whole, without entities, network or surprises of size.

libxml2 (through lxml) does the parsing. What it would let through is refused here: document types, since entities can
grow without bound and name files of this machine; text that is not UTF-8; more elements, or deeper ones, than a robot
has.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lxml import etree

from simulo.errors import LoweringError
from simulo.lowering.limits import MAX_DEPTH, MAX_ELEMENTS, MAX_XML_BYTES, refuse_large_file

_MOST_PREFIXES = 100

_XINCLUDE = "http://www.w3.org/2001/XInclude"

_PROLOGUE = rb"(?:\xef\xbb\xbf)?(?:\s++|(?><\?.*?\?>)|(?><!--.*?-->))*+"
"""What may stand before the document type and the first element. Nothing in it is tried twice, or many instructions
in a row would take for ever."""

Element = Any  # lxml comes without types, and its class has no public name


def read_xml(path: Path, kind: str, root_tags: Sequence[str], most_bytes: int = MAX_XML_BYTES) -> Element:
    """The root element of an XML file whose root is one of `root_tags`. kind: what the file is, for errors.

    Raises LoweringError naming file, line and remedy.
    """
    root = parse_xml(file_bytes(path, kind, most_bytes), f"{path}", kind)
    if root.tag not in root_tags:
        expected = " or ".join(f"<{name}>" for name in root_tags)
        raise LoweringError(
            f"{path} is not {kind}: its root element is <{root.tag}>, not {expected}; give a {kind} file"
        )
    return root


def file_bytes(path: Path, kind: str, most_bytes: int) -> bytes:
    """A regular file's content, its size checked first. A pipe or a device would never end."""
    if not path.is_file():
        problem = "is no regular file" if path.exists() else "does not exist"
        raise LoweringError(f"{path} cannot be read as {kind}: it {problem}; give the path of the model file")
    refuse_large_file(path, most_bytes, f"{path}", f"no {kind} is that large: is it the right file?")
    try:
        return path.read_bytes()
    except OSError as error:
        raise LoweringError(f"{path} cannot be read as {kind}: {error}; make the file readable") from error


def parse_xml(data: bytes, label: str, kind: str, long_text: bool = False) -> Element:
    """XML text to its root element; comments and processing instructions are dropped.

    label: the file, for errors. long_text: let one text run over 10 MB, as the numbers of a mesh do.
    """
    remedy = "save it as plain UTF-8 XML"
    if not data.strip():
        raise LoweringError(f"{label} cannot be read as {kind}: the file is empty; restore it")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise LoweringError(
            f"{label}, line {line} cannot be read as {kind}: byte {error.start} is not UTF-8 text; {remedy}"
        ) from error
    count = data.count(b"<") - data.count(b"</") - data.count(b"<!")
    if count > MAX_ELEMENTS:
        raise LoweringError(
            f"{label} has about {count} XML elements, over the limit of {MAX_ELEMENTS}; no {kind} needs as many"
        )
    if re.match(_PROLOGUE + rb"<!DOCTYPE", data, re.DOTALL):  # its entities count before the first element does
        raise LoweringError(
            f"{label} declares a document type (<!DOCTYPE>); entities are not expanded here, remove the declaration"
        )
    parser = etree.XMLParser(  # the encoding is the one judged above, whatever the file declares
        encoding="utf-8", resolve_entities=False, no_network=True, load_dtd=False, huge_tree=long_text,
        remove_comments=True, remove_pis=True,
    )  # fmt: skip
    try:
        root = etree.fromstring(_with_namespaces(data), parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise LoweringError(f"{label} cannot be read as {kind}: {error}; repair the XML") from error
    _refuse_depth(root, label, kind)
    for element in root.iter(f"{{{_XINCLUDE}}}include"):
        raise LoweringError(
            f"{label}, line {element.sourceline}: <xi:include> is not followed; put the file's text there"
        )
    return root


def _with_namespaces(data: bytes) -> bytes:
    """Robot files often use a prefix that they do not declare (`drake:`, `gz:`), which XML forbids: declare it."""
    used = set(re.findall(rb"[<\s]([A-Za-z_][\w.-]*):[A-Za-z_]", data))
    missing = used - set(re.findall(rb"\sxmlns:([\w.-]+)\s*=", data)) - {b"xml", b"xmlns"}
    start = re.match(_PROLOGUE + rb"<[A-Za-z_][\w.-]*(?=[\s/>])", data, re.DOTALL)
    if not missing or len(missing) > _MOST_PREFIXES or start is None:
        return data
    declared = b"".join(b' xmlns:%s="urn:undeclared:%s"' % (prefix, prefix) for prefix in sorted(missing))
    return data[: start.end()] + declared + data[start.end() :]


def _refuse_depth(root: Element, label: str, kind: str) -> None:
    depth = 0
    for event, element in etree.iterwalk(root, events=("start", "end")):
        depth += 1 if event == "start" else -1
        if depth > MAX_DEPTH:
            raise LoweringError(
                f"{label}, line {element.sourceline}: <{local_name(element)}> is nested {depth} deep, over the limit "
                f"of {MAX_DEPTH}; no {kind} needs as much"
            )


def local_name(element: Element) -> str:
    """An element's tag without its namespace."""
    return etree.QName(element).localname


def only(element: Element, tag: str, label: str) -> Element | None:
    """The one child of that tag, or None. Of two, nobody knows which is meant: LoweringError."""
    found = element.findall(tag)
    if len(found) > 1:
        raise LoweringError(f"{label} has {len(found)} <{tag}> elements; keep one (line {found[1].sourceline})")
    return found[0] if found else None


_NO_NUMBER = re.compile(r"[^\x00-\x7f]|_")  # what Python reads in a number and nobody else does: 1_0, Arabic digits


def numbers(text: str, count: int, label: str, largest: float) -> list[float]:
    """`count` finite numbers of at most `largest` in size, from an attribute's text."""
    noun = "number" if count == 1 else "numbers"
    try:
        if _NO_NUMBER.search(text):
            raise ValueError(f"could not convert {text[:80]!r}")
        values = [float(word) for word in text.split()]
    except ValueError as error:
        hint = "; expand the file with xacro first" if "${" in text or "$(" in text else f"; write {count} {noun}"
        raise LoweringError(f"{label} is {text[:80]!r}, which is not {count} {noun}{hint}") from error
    if len(values) != count:
        raise LoweringError(f"{label} is {text[:80]!r}; it must be {count} finite {noun}")
    if not all(math.isfinite(value) for value in values):
        raise LoweringError(f"{label} is {text[:80]!r}, which is not finite; write {count} finite {noun}")
    for value in values:
        if abs(value) > largest:
            raise LoweringError(f"{label} is {text[:80]!r}, over the limit of {largest:g}; correct its unit")
    return values
