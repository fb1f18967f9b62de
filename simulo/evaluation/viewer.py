"""A robot in the browser: its real meshes, what is checked of them, a slider per joint, and recorded stops."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import viser
from numpy.typing import NDArray

from simulo.collision import CollisionChecker, build_model
from simulo.collision.model import FingerModel
from simulo.description import RobotDescription
from simulo.evaluation.configuration import judged
from simulo.evaluation.meshes import true_meshes
from simulo.evaluation.recorded_stops import RecordedStop
from simulo.evaluation.stop_pictures import checked_triangles
from simulo.evaluation.truth import link_poses
from simulo.pose import matrix_to_wxyz

Array = NDArray[np.float64]
_MESH, _CHECKED, _REFUSED, _CELL = (158, 163, 171), (42, 111, 151), (200, 30, 30), (226, 178, 60)
_BOTH: frozenset[FingerModel] = frozenset({"mimic", "swept"})
_REST = "none: move the joints"


@dataclass(frozen=True)
class _Part:
    """What is checked of a link, under some finger models."""

    link: str
    models: frozenset[FingerModel]
    handle: viser.MeshHandle


class RobotViewer:
    """Serves one robot until its server stops. What the sliders say is judged by the gate's own checker, of itself.

    links: a frame per link. sliders: one per actuated joint. checked: what is shown of the checked geometry.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        description: RobotDescription,
        finger_model: FingerModel = "mimic",
        stops: Sequence[RecordedStop] = (),
    ) -> None:
        self._server, self._description, self._stops = server, description, tuple(stops)
        self._checker = CollisionChecker(build_model(description, finger_model), num_envs=1)
        self._changing = threading.RLock()  # the server calls back from several threads
        self._quiet = False
        server.scene.set_up_direction("+z")
        server.scene.add_grid("/floor", width=2.0, height=2.0, cell_size=0.1)
        self._base = server.scene.add_frame("/robot", show_axes=False)
        self.links = {
            link: server.scene.add_frame(f"/robot/{link}", show_axes=False) for link in description.links
        }  # fmt: skip
        self._meshes = [
            server.scene.add_mesh_simple(
                f"/robot/{link}/mesh", np.asarray(mesh.vertices), np.asarray(mesh.faces), color=_MESH, side="double"
            )
            for link, mesh in true_meshes(description).items()
        ]
        self._finger_model: FingerModel = finger_model
        self.checked = self._add_checked()
        self._around: list[viser.SceneNodeHandle] = []
        self._shown: tuple[FingerModel, Sequence[str | None]] = (finger_model, ())
        self._told = server.gui.add_markdown("")
        self._add_mesh_switch()
        self._show_checked = server.gui.add_checkbox("what is checked", True)
        self._show_checked.on_update(lambda _event: self._dress(*self._shown))
        self._chosen = self._add_stops() if stops else None
        self.sliders = self._add_sliders()
        rest = np.asarray(description.rest_pose, np.float64)
        self._look_at_robot(rest)
        self.show(rest)

    # --- what is shown -----------------------------------------------------------------------------------------------

    @property
    def sentence(self) -> str:
        """What the page says of what it shows."""
        return self._told.content

    @property
    def reddened(self) -> set[str]:
        """The links that are shown as parties of a refusal."""
        return {part.link for part in self.checked} & set(self._shown[1])

    def show(self, q: Array, base: Array | None = None) -> None:
        """Stand the robot at q [rad or m], shape (dof,), its base at a homogeneous transform, (4, 4), and judge it."""
        with self._changing:
            self._place(q, np.eye(4) if base is None else base)
            answer = judged(self._checker, q.astype(np.float32))
            apart = "" if answer["distance_mm"] is None else f", distance {answer['distance_mm']:.1f} mm"
            between = " and ".join(party for party in answer["parties"] if party)
            self._told.content = (
                f"**Clear of itself.** Nearest: {between}{apart}."
                if answer["clear"]
                else f"**Refused ({answer['kind']}):** {between}{apart}."
            )
            self._dress(self._finger_model, () if answer["clear"] else answer["parties"])

    def show_stop(self, stop: RecordedStop) -> None:
        """Stand the robot as it was commanded at a recorded stop, among what was there then."""
        with self._changing:
            with self._unheard():
                for slider, value in zip(self.sliders, stop.q.tolist(), strict=True):
                    slider.value = value
            self._place(stop.q, stop.base)
            around = stop.around(self._description)
            for k, surface in enumerate(around.solids):
                corners = surface.triangles.reshape(-1, 3)
                colour = np.asarray(surface.colour)
                faces = np.arange(len(corners)).reshape(-1, 3)
                self._around.append(
                    self._server.scene.add_mesh_simple(
                        f"/around/{k}", corners, faces, color=colour, side="double", flat_shading=True
                    )
                )
            if len(around.centres):
                self._around.append(
                    self._server.scene.add_point_cloud(
                        "/around/cells", around.centres, _CELL, point_size=0.5 * around.cell, precision="float32"
                    )
                )
            self._told.content = f"**Stop.** {stop.sentence}."
            self._dress(stop.finger_model, stop.parties)

    def _place(self, q: Array, base: Array) -> None:
        for node in self._around:
            node.remove()
        self._around = []
        _put(self._base, base)
        for link, pose in link_poses(self._description, q).items():
            _put(self.links[link], pose)

    def _dress(self, finger_model: FingerModel, parties: Sequence[str | None]) -> None:
        """Show what a finger model checks, the parties of a refusal in red."""
        for part in self.checked:
            part.handle.visible = self._show_checked.value and finger_model in part.models
            part.handle.color = _REFUSED if part.link in parties else _CHECKED
            part.handle.opacity = 0.7 if part.link in parties else 0.3
        self._shown = (finger_model, parties)

    # --- building the page -------------------------------------------------------------------------------------------

    def _look_at_robot(self, q: Array) -> None:
        """From its front, its right and a little above, so far away that all of it is seen."""
        poses = link_poses(self._description, q)
        corners = np.concatenate(
            [
                piece.vertices @ poses[link][:3, :3].T + poses[link][:3, 3]
                for link, geometry in self._description.geometry.items()
                for piece in geometry.pieces
            ]
        )
        low, high = corners.min(axis=0), corners.max(axis=0)
        camera = self._server.initial_camera
        camera.look_at = 0.5 * (low + high)
        camera.position = camera.look_at + 1.1 * np.linalg.norm(high - low) * np.array([0.74, -0.52, 0.42])

    def _add_checked(self) -> list[_Part]:
        """Every link's pieces, and of hands that the swept model knows its hull beside them."""
        fingers = {
            link
            for gripper in self._description.grippers
            if gripper.name in self._description.swept
            for link in gripper.grasp_contact_links
        }
        leaders = [swept.link for swept in self._description.swept.values()]
        parts = [(link, _BOTH - {"swept"} if link in fingers else _BOTH) for link in self._description.geometry]
        parts += [(link, _BOTH - {"mimic"}) for link in leaders]
        return [_Part(link, models, self._add_part(link, min(models))) for link, models in parts]

    def _add_part(self, link: str, finger_model: str) -> viser.MeshHandle:
        corners = checked_triangles(self._description, link, finger_model).reshape(-1, 3)
        faces = np.arange(len(corners)).reshape(-1, 3)
        name = f"/robot/{link}/checked, {finger_model}"
        return self._server.scene.add_mesh_simple(
            name, corners, faces, color=_CHECKED, opacity=0.3, side="double", flat_shading=True
        )

    def _add_mesh_switch(self) -> None:
        meshes = self._server.gui.add_checkbox("the model's own triangles", True)

        @meshes.on_update
        def _(_event: object) -> None:
            for handle in self._meshes:
                handle.visible = meshes.value

    def _add_stops(self) -> viser.GuiDropdownHandle[str]:
        titles = [stop.title for stop in self._stops]
        chosen = self._server.gui.add_dropdown("stop", [_REST, *titles], initial_value=_REST)

        @chosen.on_update
        def _(_event: object) -> None:
            if self._quiet:
                return
            if chosen.value == _REST:
                self.show(self._from_sliders())
            else:
                self.show_stop(self._stops[titles.index(chosen.value)])

        return chosen

    def _add_sliders(self) -> list[viser.GuiSliderHandle[float]]:
        sliders = []
        for joint, rest in zip(self._description.joints, self._description.rest_pose, strict=True):
            lower, upper = (
                end if math.isfinite(end) else turn
                for end, turn in ((joint.lower, -math.pi), (joint.upper, math.pi))
            )  # fmt: skip
            unit = "m" if joint.type == "prismatic" else "rad"
            slider = self._server.gui.add_slider(
                f"{joint.name} [{unit}]",
                lower,
                max(upper, lower + 1e-9),
                max((upper - lower) / 1000, 1e-9),
                float(rest),
            )
            slider.on_update(self._moved)
            sliders.append(slider)
        return sliders

    def _moved(self, _event: object) -> None:
        if self._quiet:
            return
        with self._changing:
            if self._chosen is not None:
                with self._unheard():
                    self._chosen.value = _REST
            self.show(self._from_sliders())

    def _from_sliders(self) -> Array:
        return np.array([slider.value for slider in self.sliders], dtype=np.float64)

    @contextmanager
    def _unheard(self):
        """Values are set by this page itself, not by who looks at it."""
        self._quiet = True
        try:
            yield
        finally:
            self._quiet = False


def _put(frame: viser.FrameHandle, pose: Array) -> None:
    frame.position = pose[:3, 3]
    frame.wxyz = matrix_to_wxyz(pose[:3, :3])
