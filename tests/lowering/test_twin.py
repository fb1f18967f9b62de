"""A twin's CAD is folded in where its frames coincide within 1 mm, and nowhere else."""

from pathlib import Path

import numpy as np
import pytest
import trimesh
import yaml

from simulo.description import load_description
from simulo.errors import LoweringError
from simulo.lowering import link_meshes, lower_robot
from simulo.lowering.model import RobotModel, link_mesh
from simulo.lowering.twin import fold_twin
from simulo.lowering.urdf import read_urdf
from tests.lowering.urdf_text import joint, link, robot, shape

TURN = "<limit lower='-1' upper='1'/>"


def arm(names: tuple[str, str, str], shapes: tuple[str, str, str], xyz: str = "0 0 0.3", rpy: str = "0 0 0") -> str:
    """Base, upper arm and forearm in a row on two hinges; xyz, rpy: where the forearm hangs."""
    base, upper, fore = names
    elbow = joint("elbow", "revolute", upper, fore, TURN, xyz=xyz).replace("<origin ", f"<origin rpy='{rpy}' ")
    return robot(
        *(link(name, inside) for name, inside in zip(names, shapes, strict=True)),
        joint("shoulder", "revolute", base, upper, TURN), elbow,
    )  # fmt: skip


OURS, THEIRS = ("base", "upper", "fore"), ("b0", "b1", "b2")
BOX = shape("<box size='0.05 0.05 0.3'/>")
CAD = shape("<mesh filename='cad.stl'/>")
PROXY = shape("<capsule radius='0.2' length='0.5'/>")
NAMES = dict(zip(OURS, THEIRS, strict=True))


@pytest.fixture
def models(tmp_path: Path):
    """Reads the robot and a twin whose links carry a 0.1 m cube of CAD and a contact proxy of 0.9 m."""
    trimesh.creation.box(extents=[0.1, 0.1, 0.1]).export(tmp_path / "cad.stl")

    def read(**twin: str) -> tuple[RobotModel, RobotModel]:
        for name, text in (("r.urdf", arm(OURS, (BOX,) * 3)), ("twin.urdf", arm(THEIRS, (CAD + PROXY,) * 3, **twin))):
            (tmp_path / name).write_text(text)
        return read_urdf(tmp_path / "r.urdf"), read_urdf(tmp_path / "twin.urdf")

    return read


def widths(model: RobotModel) -> list[float]:
    return [float(np.ptp(link_mesh(model.shapes[name]).bounds[:, 0])) for name in OURS]


@pytest.mark.parametrize(
    ("twin", "offset", "folded"),
    [
        pytest.param({}, 0.0, True, id="equal"),
        pytest.param({"xyz": "0 0.0009 0.3"}, 0.0009, True, id="within-1-mm"),
        pytest.param({"xyz": "0 0.002 0.3"}, 0.002, False, id="2-mm-off"),
        # the cube's corners, 71 mm from the axis, change sides; the elbow then bends the other way, by up to 1 rad
        pytest.param({"rpy": "0 0 3.14159265358979"}, 0.28, False, id="turned-about-its-own-axis"),
    ],
)
def test_cad_is_folded_where_frames_coincide(models, twin: dict[str, str], offset: float, folded: bool) -> None:
    """The forearm alone is in question; a turned frame is in the same place, and its corners are not."""
    ours, theirs = models(**twin)
    model, offsets = fold_twin(ours, theirs, NAMES, "robot.yaml")
    assert offsets["upper"] == pytest.approx(0.0, abs=1e-12)
    assert offsets["fore"] == pytest.approx(offset, rel=0.5, abs=1e-9)
    assert widths(model) == pytest.approx([0.1, 0.1, 0.1 if folded else 0.05])  # the proxy, 0.4 m wide, is in none
    assert widths(ours) == pytest.approx([0.05, 0.05, 0.05])


def test_a_joint_that_turns_the_other_way_is_no_coincidence(models, tmp_path: Path) -> None:
    """At zero the frames are one; over the joint's range they are not."""
    ours, _ = models()
    text = (tmp_path / "twin.urdf").read_text().replace("<axis xyz='1 0 0'/>", "<axis xyz='-1 0 0'/>", 1)
    (tmp_path / "twin.urdf").write_text(text)
    _, offsets = fold_twin(ours, read_urdf(tmp_path / "twin.urdf"), NAMES, "robot.yaml")
    assert offsets["base"] == 0.0 and offsets["upper"] > 0.01 and offsets["fore"] > 0.01


def test_names_that_a_model_lacks_are_refused(models) -> None:
    ours, theirs = models()
    with pytest.raises(LoweringError, match=r"robot.yaml: twin.links names 'b9'.*twin.urdf; links: b0, b1, b2"):
        fold_twin(ours, theirs, {"fore": "b9"}, "robot.yaml")
    with pytest.raises(LoweringError, match=r"twin.links names 'hand'.*r.urdf"):
        fold_twin(ours, theirs, {"hand": "b2"}, "robot.yaml")
    with pytest.raises(LoweringError, match="has no link of this robot; name them"):
        fold_twin(ours, theirs, {}, "robot.yaml")


def test_a_robot_with_a_twin_covers_both(models, tmp_path: Path) -> None:
    """The hulls hold the twin's cube, the true meshes too, and collision.json says how far the frames are apart."""
    models()
    declared = {
        "name": "tiny",
        "source": {"path": "r.urdf", "licence": "CC0-1.0", "format": "urdf"},
        "twin": {
            "source": {"path": "twin.urdf", "licence": "CC0-1.0", "format": "urdf"}, "root_link": "b0", "links": NAMES,
        },
        "root_link": "base",
        "joints": [{"name": name, "role": "arm"} for name in ("shoulder", "elbow")],
    }  # fmt: skip
    (tmp_path / "robot.yaml").write_text(yaml.safe_dump(declared))
    lowered = lower_robot(tmp_path)
    (tmp_path / "collision.json").write_text(lowered.text)
    description = load_description(tmp_path)
    assert description.geometry["fore"].hull.vertices[:, 0].max() >= 0.05
    assert lowered.collision.twin_offsets == {"base": 0.0, "upper": 0.0, "fore": 0.0}
    assert np.ptp(link_meshes(description)["fore"].bounds, axis=0) == pytest.approx([0.1, 0.1, 0.3])
