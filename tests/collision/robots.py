"""Small robots made of boxes and balls, whose distances can be worked out by hand."""

from __future__ import annotations

import itertools

import numpy as np

from simulo.description import (
    DOP_DIRECTIONS,
    ConvexPiece,
    DisabledPair,
    FixedAttachment,
    Gripper,
    Joint,
    LinkGeometry,
    MimicJoint,
    PadPoint,
    RobotDescription,
    Source,
)
from simulo.pose import Pose

IDENTITY = Pose()


def piece(vertices, pose: Pose = IDENTITY, radius: float = 0.0) -> ConvexPiece:
    """A piece from vertices [m] in the link frame, with a ball around each; its box has the axes of `pose`."""
    points = np.asarray(vertices, np.float64)
    local = (points - np.asarray(pose.position)) @ pose.rotation
    centre, half = 0.5 * (local.min(0) + local.max(0)), 0.5 * (local.max(0) - local.min(0)) + radius
    box = Pose(tuple(pose.rotation @ centre + np.asarray(pose.position)), pose.orientation_wxyz)
    along = ((points - np.asarray(box.position)) @ box.rotation) @ DOP_DIRECTIONS.T
    ball = radius * np.linalg.norm(DOP_DIRECTIONS, axis=1)
    return ConvexPiece(points, box, tuple(half), np.stack([along.min(0) - ball, along.max(0) + ball], axis=1), radius)


def box_piece(size, centre=(0.0, 0.0, 0.0)) -> ConvexPiece:
    corners = np.array(list(itertools.product((-0.5, 0.5), repeat=3))) * np.asarray(size) + np.asarray(centre)
    return piece(corners)


def link(name: str, *pieces: ConvexPiece) -> LinkGeometry:
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    whole = np.concatenate([(p.vertices[:, None] + p.radius * signs).reshape(-1, 3) for p in pieces])
    return LinkGeometry(name, tuple(pieces), pieces[0] if len(pieces) == 1 else piece(whole))


def joint(
    name: str, parent: str, child: str, at=(0.0, 0.0, 0.0), axis=(0.0, 0.0, 1.0), kind="revolute", **over
) -> Joint:
    values = {"lower": -3.0, "upper": 3.0, "velocity_limit": 2.0, "role": "arm", "sim_name": name}
    return Joint(name, kind, parent, child, Pose(at), axis, **{**values, **over})


def describe(
    name: str, links, joints, *, fixed=(), mimics=(), grippers=(), disabled=(), geometry, touch=(), swept=None
):
    return RobotDescription(
        name=name,
        source=Source("tests", "0", "robots.py", "Apache-2.0", "mjcf"),
        root_link=links[0],
        links=tuple(links),
        joints=tuple(joints),
        fixed_attachments=tuple(fixed),
        mimic_joints=tuple(mimics),
        grippers=tuple(grippers),
        rest_pose=np.zeros(len(joints)),
        disabled_pairs=tuple(DisabledPair(a, b, "adjacent") for a, b in disabled),
        touch_links=tuple(touch),
        geometry={g.link: g for g in geometry},
        swept=swept or {},
        digest=f"tests:{name}",
    )


def sliders(count: int = 2, size=(0.1, 0.1, 0.1), spacing: float = 1.0) -> RobotDescription:
    """A base without geometry and `count` boxes, each on a slide along x; box i starts at x = i * spacing."""
    names = [f"box{i}" for i in range(count)]
    joints = [
        joint(
            f"slide{i}",
            "base",
            n,
            at=(i * spacing, 0.0, 0.0),
            axis=(1.0, 0.0, 0.0),
            kind="prismatic",
            lower=-9,
            upper=9,
        )
        for i, n in enumerate(names)
    ]
    return describe("sliders", ["base", *names], joints, geometry=[link(n, box_piece(size)) for n in names])


def pincer() -> RobotDescription:
    """Two arms of one elbow each on a pedestal, every one with a hand of two prismatic fingers, one following.

    Arms hang at y = +0.5 (left) and -0.5 (right) and point along x: upper arm 0.4 m, forearm 0.3 m with a palm at its
    end, then fingers 0.08 m long that slide along y. Finger joint 0 (closed) .. 0.04 m (open); follower mirrored.
    """
    links, joints, fixed, mimics, grippers, geometry, disabled = ["pedestal"], [], [], [], [], [], []
    geometry.append(link("pedestal", box_piece((0.2, 0.6, 0.1), (-0.2, 0.0, 0.0))))
    for side, y in (("left", 0.5), ("right", -0.5)):
        mount, upper, lower, palm, jaw, follower = (
            f"{side}_{n}" for n in ("mount", "upper", "lower", "palm", "jaw", "follower")
        )
        links += [mount, upper, lower, palm, jaw, follower]
        fixed += [
            FixedAttachment("pedestal", mount, Pose((0.0, y, 0.0))),
            FixedAttachment(lower, palm, Pose((0.3, 0, 0))),
        ]
        joints.append(joint(f"{side}_shoulder", mount, upper))
        joints.append(joint(f"{side}_elbow", upper, lower, at=(0.4, 0.0, 0.0)))
        finger = joint(
            f"{side}_finger", palm, jaw, at=(0.05, 0.005, 0.0), axis=(0.0, 1.0, 0.0), kind="prismatic",
            lower=0.0, upper=0.04, role="gripper",
        )  # fmt: skip
        joints.append(finger)
        mimics.append(
            MimicJoint(
                f"{side}_finger2", "prismatic", palm, follower, Pose((0.05, -0.005, 0.0)), (0.0, -1.0, 0.0),
                f"{side}_finger", 1.0, 0.0, f"{side}_finger2",
            )
        )  # fmt: skip
        grippers.append(
            Gripper(
                side, f"{side}_finger", palm, (jaw,), (follower,), 0.04, 0.0, Pose((0.09, 0.0, 0.0)),
                (PadPoint(jaw, (0.04, 0.0, 0.0)), PadPoint(follower, (0.04, 0.0, 0.0))),
            )
        )  # fmt: skip
        geometry += [
            link(mount, box_piece((0.05, 0.05, 0.05))),
            link(upper, box_piece((0.3, 0.05, 0.05), (0.2, 0.0, 0.0))),
            link(lower, box_piece((0.2, 0.05, 0.05), (0.15, 0.0, 0.0))),
            link(palm, box_piece((0.04, 0.1, 0.04))),
            link(jaw, box_piece((0.08, 0.01, 0.02), (0.04, 0.005, 0.0))),
            link(follower, box_piece((0.08, 0.01, 0.02), (0.04, -0.005, 0.0))),
        ]
        disabled += [("pedestal", mount), (mount, upper), (upper, lower), (lower, palm), (palm, jaw), (palm, follower)]
        disabled += [(jaw, follower), ("pedestal", upper)]
    return describe(
        "pincer", links, joints, fixed=fixed, mimics=mimics, grippers=grippers, disabled=disabled, geometry=geometry
    )


def ball_arm() -> RobotDescription:
    """An arm of four turning joints along x: a box, a sphere, a capsule, a chain of two capsules that bends, and a box
    for a hand. It reaches itself."""
    names = ["base", "shoulder", "upper", "fore", "hand"]
    axes = [(0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (0.0, 0.6, 0.8), (1.0, 0.0, 0.0)]
    places = [(0.0, 0.0, 0.1), (0.15, 0.0, 0.0), (0.3, 0.0, 0.0), (0.2, 0.0, 0.1)]
    joints = [
        joint(f"turn{i}", names[i], names[i + 1], at=place, axis=axis)
        for i, (axis, place) in enumerate(zip(axes, places, strict=True))
    ]
    geometry = [
        link("base", box_piece((0.2, 0.3, 0.1))),
        link("shoulder", piece([[0.02, 0.0, 0.01]], radius=0.06)),
        link("upper", piece([[0.03, 0.0, 0.0], [0.25, 0.01, 0.02]], Pose.from_rpy((0, 0, 0), (0.3, 0.2, 0.1)), 0.04)),
        link(
            "fore",
            piece([[0.02, 0.0, 0.0], [0.2, 0.0, 0.0]], radius=0.03),
            piece([[0.2, 0.0, 0.0], [0.2, 0.0, 0.1]], radius=0.025),
        ),
        link("hand", box_piece((0.04, 0.12, 0.06), (0.0, 0.0, 0.06))),
    ]
    return describe("ball_arm", names, joints, disabled=list(itertools.pairwise(names)), geometry=geometry)
