"""Choosing pieces by measured false stops, and the four rules, on a robot whose right answer is plain."""

import json
from pathlib import Path

import numpy as np
import pytest

from simulo.cli.fitting import show_auto, show_rules
from simulo.cli.lower import lower_command
from simulo.description import load_description
from simulo.description.cuts import Asked
from simulo.evaluation.auto import choose_pieces
from simulo.evaluation.rules import refusals
from simulo.lowering import link_meshes
from simulo.lowering.rules import link_candidates, totals
from tests.lowering.urdf_text import joint, link, robot


def plate(size: str, place: str) -> str:
    return f"<collision><origin xyz='{place}'/><geometry><box size='{size}'/></geometry></collision>"


CHANNEL = (
    plate("0.12 0.04 0.02", "0 0 0.01")
    + plate("0.02 0.04 0.08", "-0.05 0 0.06")
    + plate("0.02 0.04 0.08", "0.05 0 0.06")
)
LIMIT = "<limit lower='-0.02' upper='0.02'/>"


@pytest.fixture
def shuttle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A block that slides about in a U channel, 80 mm wide and 80 mm deep, on two joints and never touches it; the
    channel's one hull always holds it, but for the highest places."""
    monkeypatch.setenv("SIMULO_MODEL_PATH", str(tmp_path))
    (tmp_path / "r.urdf").write_text(
        robot(
            link("channel", CHANNEL),
            link("carriage", ""),
            link("block", plate("0.02 0.02 0.02", "0 0 0")),
            joint("across", "prismatic", "channel", "carriage", LIMIT, xyz="0 0 0.075"),
            joint("up", "prismatic", "carriage", "block", "<limit lower='-0.02' upper='0.08'/>", xyz="0 0 0").replace(
                "<axis xyz='1 0 0'/>", "<axis xyz='0 0 1'/>"
            ),
        )
    )
    (tmp_path / "robot.yaml").write_text(
        "{name: shuttle, root_link: channel, joints: [{name: across, role: arm}, {name: up, role: arm}],"
        " source: {package: none, version: '1', path: r.urdf, licence: CC0-1.0, format: urdf}}"
    )
    assert lower_command(str(tmp_path), check=False) == 0
    return str(tmp_path)


def test_a_concave_link_is_cut_and_the_reasons_say_what_it_brought(shuttle: str, capsys: pytest.CaptureFixture) -> None:
    chosen = choose_pieces(shuttle, 200)
    assert chosen.before.false_stops > 50
    assert chosen.after.false_stops == chosen.after.missed == chosen.after.contacts == 0
    assert chosen.pieces["channel"] == 4
    assert chosen.reasons[0].startswith(f"one hull a link: {chosen.before.false_stops} of ")
    assert "0 of 0 stops false" in chosen.reasons[-1]
    assert all(us > 0.0 for us in chosen.self_check_us)
    assert choose_pieces(shuttle, 200).pieces == chosen.pieces
    assert show_auto(shuttle, 200, None) == chosen.pieces
    assert "decompose:\n  channel: 4" in capsys.readouterr().out
    assert lower_command(shuttle, Asked(decompose=chosen.pieces)) == 0
    assert len(load_description(shuttle).geometry["channel"].pieces) == 4
    again = choose_pieces(shuttle, 200)
    assert (again.before, again.pieces) == (chosen.before, chosen.pieces), "whatever it is lowered to now"


def test_the_rules_side_by_side(shuttle: str, tmp_path: Path) -> None:
    description = load_description(shuttle)
    found = {name: link_candidates(mesh) for name, mesh in link_meshes(description).items()}
    sides = totals(found)
    assert sides["A"].volume_ratio == min(side.volume_ratio for side in sides.values())
    assert sides["B"].largest_protrusion == min(side.largest_protrusion for side in sides.values())
    assert sides["M1"].solids == 2
    assert not set(sides["M1"].kinds) & {"chain of 2", "chain of 3"}
    measured = refusals(description, found, 300)
    for rule, side in sides.items():
        assert sum(side.kinds.values()) == 2
        assert measured[rule].poses == 300
        assert 0 <= measured[rule].slop <= measured[rule].refused <= 300
    show_rules(shuttle, "M", tmp_path / "rules.json")
    written = json.loads((tmp_path / "rules.json").read_text())
    assert np.isclose(written["rules"]["M"]["mean_protrusion"], sides["M"].mean_protrusion)
    assert [c["kind"] for c in written["links"]["block"]] == ["capsule", "chain of 2", "chain of 3", "box"]
