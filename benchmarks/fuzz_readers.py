"""Does any damaged model file crash a reader, hang it, or lose a shape without a word?

Mutates small valid URDF, MJCF, SRDF and mesh files by structure (elements removed, doubled, moved, renamed, numbers
made absurd) and by bytes (flipped, cut, doubled), and reads them. Allowed are the project's own errors, and a result
that holds every shape that the file still has. That is counted apart, by lxml for URDF and mesh triangles, by MuJoCo's
own compiled model for MJCF.

    python benchmarks/fuzz_readers.py --minutes 30 --seed 0 --json fuzz.json
"""

from __future__ import annotations

import argparse
import json
import random
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import trimesh
from lxml import etree

from simulo.errors import SimuloError
from simulo.lowering.mjcf import read_mjcf
from simulo.lowering.model import RobotModel
from simulo.lowering.srdf import read_srdf
from simulo.lowering.urdf import read_urdf

SLOW = 30.0
"""[s] A case that takes longer is a hang."""

ABSURD = "nan inf -1 0 1e300 -1e-300 1e9 99999999999999999999 0x10 ${pi} \u00e9 1,5 --1".split()

SHAPES = ("mesh", "box", "sphere", "cylinder", "capsule")

MESH_LINK = "<collision><geometry><mesh filename='{}' scale='1 1 1'/></geometry></collision>"

URDF = f"""<?xml version="1.0"?>
<robot name="r">
  <link name="base"><visual><geometry><box size="0.2 0.2 0.1"/></geometry></visual>
    {MESH_LINK.format("a.stl")}
    <collision><origin xyz="0 0 1"/><geometry><sphere radius="0.1"/></geometry></collision></link>
  <link name="arm">{MESH_LINK.format("b.obj")}{MESH_LINK.format("c.dae")}</link>
  <link name="jaw"><collision><geometry><cylinder radius="0.02" length="0.1"/></geometry></collision></link>
  <link name="other">{MESH_LINK.format("d.ply")}</link>
  <joint name="turn" type="revolute"><parent link="base"/><child link="arm"/><origin xyz="0 0 0.1" rpy="0 0 1"/>
    <axis xyz="0 0 1"/><limit lower="-1" upper="1" velocity="2" effort="1"/></joint>
  <joint name="slide" type="prismatic"><parent link="arm"/><child link="jaw"/><axis xyz="0 1 0"/>
    <limit lower="0" upper="0.04"/></joint>
  <joint name="follow" type="prismatic"><parent link="arm"/><child link="other"/><axis xyz="0 -1 0"/>
    <mimic joint="slide" multiplier="1" offset="0"/></joint>
</robot>
"""

MJCF = """<mujoco>
  <compiler angle="degree" autolimits="true"/>
  <default><geom size="0.02"/><default class="visual"><geom contype="0" conaffinity="0"/></default></default>
  <asset><mesh name="a" file="a.stl" scale="1 -1 1"/><mesh name="b" file="b.obj"/></asset>
  <worldbody><geom type="box" size="0.1 0.1 0.05"/>
    <body name="arm" pos="0 0 0.1"><joint name="turn" axis="0 0 1" range="-40 40"/><geom type="mesh" mesh="a"/>
      <geom class="visual" type="mesh" mesh="b" pos="0 0 0.1"/>
      <body name="jaw"><joint name="slide" type="slide" axis="0 1 0" range="0 0.04"/>
        <geom type="capsule" fromto="0 0 0 0 0 0.1"/></body>
      <body name="other"><joint name="follow" type="slide" axis="0 -1 0" range="0 0.04"/>
        <geom type="ellipsoid" size="0.02 0.03 0.04"/></body></body></worldbody>
  <equality><joint joint1="follow" joint2="slide" polycoef="0 1 0 0 0"/></equality>
  <actuator><position joint="turn"/><position joint="slide"/></actuator>
</mujoco>
"""

SRDF = """<robot name="r"><group_state name="home" group="g"><joint name="turn" value="0.5"/></group_state>
  <disable_collisions link1="base" link2="arm" reason="Adjacent"/>
  <disable_collisions link1="jaw" link2="other" reason="Never"/></robot>
"""


@dataclass(frozen=True)
class Finding:
    """What went wrong in a case; the seed brings it back: `--only SEED`."""

    seed: int
    kind: str
    target: str
    words: str


class Workshop:
    """A folder of valid files, one of which is damaged at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        cube = trimesh.creation.box(extents=[0.1, 0.2, 0.3])
        meshes = {"a.stl": cube.export(file_type="stl"), "b.obj": cube.export(file_type="obj").encode()}
        meshes |= {"c.dae": cube.export(file_type="dae"), "d.ply": cube.export(file_type="ply", encoding="ascii")}
        texts = {"r.urdf": URDF.encode(), "r.xml": MJCF.encode(), "r.srdf": SRDF.encode()}
        self.sound: dict[str, bytes] = {**texts, **meshes}
        self.repair()

    def repair(self) -> None:
        for name, data in self.sound.items():
            (self.folder / name).write_bytes(data)

    def read(self, target: str) -> None:
        """Read what depends on the damaged file; raise AssertionError when a shape is lost."""
        urdf, mjcf = self.folder / "r.urdf", self.folder / "r.xml"
        if target != "r.xml":
            model = read_urdf(urdf)
            refuse_lost_urdf_shapes(urdf, model)
            if target == "r.srdf":
                read_srdf(self.folder / "r.srdf", model)
        if target in ("r.xml", "a.stl", "b.obj"):
            refuse_lost_mjcf_shapes(mjcf, read_mjcf(mjcf, "world"))


def refuse_lost_urdf_shapes(path: Path, model: RobotModel) -> None:
    """Every shape element anywhere in the file, and every triangle that a mesh file announces, is in the model."""
    root = etree.parse(str(path), etree.XMLParser(recover=True)).getroot()
    shapes = sum(1 for element in root.iter(*SHAPES))
    found = [shape for group in model.shapes.values() for shape in group]
    assert len(found) == shapes, f"{shapes} shapes in the file, {len(found)} in the model"
    for link in root.iter("link"):
        expected = sum(1 for element in link.iter(*SHAPES))
        assert len(model.shapes.get(link.get("name"), ())) == expected, f"link {link.get('name')!r} lost a shape"
    announced = sum(announced_triangles(path.parent / mesh.get("filename")) for mesh in root.iter("mesh"))
    drawn = sum(len(shape.mesh.faces) for shape in found if shape.cad)
    assert drawn >= announced, f"{announced} triangles in the mesh files, {drawn} in the model"


def announced_triangles(path: Path) -> int:
    """How many triangles a mesh file says it has, by its own words."""
    data, suffix = path.read_bytes(), path.suffix.lower()
    if suffix == ".stl" and not data.lstrip().startswith(b"solid"):
        return struct.unpack("<I", data[80:84])[0]
    if suffix == ".obj":
        return sum(1 for line in data.split(b"\n") if line.split()[:1] == [b"f"])
    if suffix == ".ply":
        return int(next(line.split()[2] for line in data.split(b"\n") if line.split()[:2] == [b"element", b"face"]))
    if suffix == ".dae":
        root = etree.fromstring(data)
        return sum(
            len((p.text or "").split()) // 3 // _stride(p.getparent()) for p in root.iterfind(".//{*}triangles/{*}p")
        )
    return 0


def _stride(triangles: etree._Element) -> int:
    return max(1, len({element.get("offset") for element in triangles.iterfind("{*}input")}))


def refuse_lost_mjcf_shapes(path: Path, model: RobotModel) -> None:
    """As many shapes as the file has geom elements, replicas counted: this one has none, nor includes."""
    root = etree.parse(str(path), etree.XMLParser(recover=True)).getroot()
    geoms = sum(1 for world in root.iter("worldbody") for element in world.iter("geom"))
    copies = any(True for _ in root.iter("replicate", "attach", "include", "flexcomp", "composite"))
    found = sum(len(group) for group in model.shapes.values())
    assert copies or found == geoms, f"{geoms} geoms in the file, {found} in the model"


def damaged(data: bytes, name: str, draw: random.Random) -> bytes:
    """The file by structure, where it has one, or by bytes; now and then by both."""
    text = name.endswith((".urdf", ".xml", ".srdf", ".dae"))
    if text and draw.random() < 0.7:
        data = restructured(data, draw)
    elif not text and draw.random() < 0.4:
        data = renumbered(data, draw)
    if not text or draw.random() < 0.35:
        for _ in range(draw.choice((1, 1, 1, 3, 10))):
            data = draw.choice(BYTE_DAMAGE)(data, draw)
    return data


def restructured(data: bytes, draw: random.Random) -> bytes:
    root = etree.fromstring(data)
    for _ in range(draw.choice((1, 1, 2, 4))):
        elements = list(root.iter())
        element = draw.choice(elements)
        parent = element.getparent()
        deed = draw.randrange(8)
        if deed == 0 and parent is not None:
            parent.remove(element)
        elif deed == 1 and parent is not None:
            parent.append(etree.fromstring(etree.tostring(element)))
        elif deed == 2 and parent is not None:
            stranger = draw.choice(elements)
            if element not in (stranger, *stranger.iterancestors()):
                stranger.append(element)
        elif deed == 3:
            element.tag = draw.choice([str(other.tag) for other in elements] + ["joint", "geom", "Link", "x"])
        elif element.attrib:
            key = draw.choice(list(element.attrib))
            if deed == 4:
                del element.attrib[key]
            elif deed == 5:
                others = [value for other in elements for value in other.attrib.values()]
                element.set(key, draw.choice(others))
            else:
                words = element.get(key, "").split() or [""]
                words[draw.randrange(len(words))] = draw.choice(ABSURD)
                element.set(key, " ".join(words))
        elif element.text:
            words = element.text.split() or [""]
            words[draw.randrange(len(words))] = draw.choice(ABSURD)
            element.text = " ".join(words)
    return etree.tostring(root)


def renumbered(data: bytes, draw: random.Random) -> bytes:
    """Another word in a text file; another number in a binary one."""
    if b"\0" not in data:
        words = data.split(b" ")
        words[draw.randrange(len(words))] = draw.choice(ABSURD).encode()
        return b" ".join(words)
    place = draw.randrange(max(1, len(data) - 4))
    number = draw.choice([struct.pack("<I", draw.randrange(2**32)), struct.pack("<f", draw.choice([np.nan, 1e38, 0]))])
    return data[:place] + number + data[place + 4 :]


def _flip(data: bytes, draw: random.Random) -> bytes:
    if not data:
        return data
    place = draw.randrange(len(data))
    return data[:place] + bytes([draw.randrange(256)]) + data[place + 1 :]


def _cut(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def _drop(data: bytes, draw: random.Random) -> bytes:
    start = draw.randrange(len(data) + 1)
    return data[:start] + data[start + draw.randrange(1, 40) :]


def _double(data: bytes, draw: random.Random) -> bytes:
    start = draw.randrange(len(data) + 1)
    end = start + draw.randrange(1, 400)
    return data[:end] + data[start:end] * draw.choice((1, 1, 2, 50)) + data[end:]


BYTE_DAMAGE: tuple[Callable[[bytes, random.Random], bytes], ...] = (_flip, _flip, _cut, _drop, _double)


def run_case(workshop: Workshop, seed: int) -> tuple[str, str, Finding | None]:
    """(file, outcome, finding or None) of one damaged file. Outcomes: read, refused, crash, hang, lost."""
    draw = random.Random(seed)
    target = draw.choice(list(workshop.sound))
    (workshop.folder / target).write_bytes(damaged(workshop.sound[target], target, draw))
    start, words = time.monotonic(), ""
    try:
        workshop.read(target)
        outcome = "read"
    except SimuloError as error:
        outcome, words = "refused", str(error)
        if not words.strip() or str(workshop.folder) not in words:
            return target, "crash", Finding(seed, "unnamed", target, words)
    except AssertionError as error:
        outcome, words = "lost", str(error)
    except Exception:  # noqa: BLE001 - any other error is what is looked for
        outcome, words = "crash", traceback.format_exc(limit=-4)
    finally:
        workshop.repair()
    if time.monotonic() - start > SLOW:
        return target, "hang", Finding(seed, "hang", target, f"{time.monotonic() - start:.0f} s: {words[:200]}")
    bad = outcome in ("lost", "crash")
    return target, outcome, Finding(seed, outcome, target, words) if bad else None


def fuzz(seconds: float, seed: int, cases: int | None = None) -> dict:
    """Damage and read until the time is up, or for a number of cases."""
    outcomes: Counter[str] = Counter()
    findings: list[Finding] = []
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        workshop = Workshop(Path(folder))
        for target in workshop.sound:
            workshop.read(target)  # undamaged, every file is read
        while time.monotonic() - start < seconds and (cases is None or outcomes.total() < cases):
            target, outcome, finding = run_case(workshop, seed + outcomes.total())
            outcomes[f"{target} {outcome}"] += 1
            if finding is not None:
                findings.append(finding)
                print(f"seed {finding.seed}: {finding.kind} in {finding.target}: {finding.words}", flush=True)
    counts = dict(sorted(outcomes.items()))
    found = [vars(finding) for finding in findings]
    return {
        "seconds": time.monotonic() - start,
        "seed": seed,
        "cases": outcomes.total(),
        "outcomes": counts,
        "findings": found,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=0.3, help="how long; 30 for a full run")
    parser.add_argument("--seed", type=int, default=0, help="first case; each case is the next number")
    parser.add_argument("--only", type=int, help="one case again, by its number")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    options = parser.parse_args()
    report = fuzz(60.0 * options.minutes, options.seed) if options.only is None else fuzz(1e9, options.only, 1)
    for outcome, count in report["outcomes"].items():
        print(f"{count:8d}  {outcome}")
    print(f"{report['cases']} cases in {report['seconds']:.0f} s, {len(report['findings'])} findings")
    if options.json is not None:
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    return 1 if report["findings"] else 0


if __name__ == "__main__":
    sys.exit(main())
