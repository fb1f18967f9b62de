"""How each link is cut: robot.yaml's own, what a command line asks over it, and whether geometry is of such a cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from simulo.description.files import FitChoice, LinkCut, PieceEntry, RobotFile
from simulo.errors import DescriptionError

UNCUT = LinkCut()
ALL_LINKS = "all"
"""Stands, among the links to fit primitives around, for every link that nothing else is said of."""

_BOX_CORNERS = 8


@dataclass(frozen=True)
class Asked:
    """What a command line asks of links, over robot.yaml's own: slabs, pieces and primitives by link."""

    tight_links: Mapping[str, int] = field(default_factory=dict)
    decompose: Mapping[str, int] = field(default_factory=dict)
    fitted_links: Mapping[str, FitChoice] = field(default_factory=dict)


def own_cuts(robot: RobotFile, links: Collection[str], where: str) -> dict[str, LinkCut]:
    """robot.yaml's cuts by link. links: those with geometry. Raises DescriptionError as `merged_cuts` does."""
    return merged_cuts(robot, Asked(), links, where)


def merged_cuts(robot: RobotFile, asked: Asked, links: Collection[str], where: str) -> dict[str, LinkCut]:
    """robot.yaml's cuts with the asked for ones over them, by link. links: those with geometry.

    Raises DescriptionError for a link that is to be cut in two ways, or that has no geometry.
    """
    own, over = (_cuts(source, where) for source in (robot, asked))
    everywhere = over.pop(ALL_LINKS, None) if ALL_LINKS not in links else None
    cuts = own | ({} if everywhere is None else dict.fromkeys(links, everywhere)) | over
    for link in cuts:
        if link not in links:
            raise DescriptionError(f"{where}: {link!r} has no geometry in the model; links: {', '.join(links)}")
    return cuts


def overrides(own: Mapping[str, LinkCut], cuts: Mapping[str, LinkCut]) -> dict[str, LinkCut]:
    """The cuts that are not robot.yaml's own, by link in the order of names."""
    return {link: cuts[link] for link in sorted(cuts) if cuts[link] != own.get(link, UNCUT)}


def _cuts(source: RobotFile | Asked, where: str) -> dict[str, LinkCut]:
    ways = (
        {link: LinkCut(slabs=count) for link, count in source.tight_links.items()},
        {link: LinkCut(pieces=count) for link, count in source.decompose.items()},
        {link: LinkCut(fit=choice) for link, choice in source.fitted_links.items()},
    )
    named = Counter(link for way in ways for link in way)
    for link, count in named.items():
        if count > 1:
            raise DescriptionError(
                f"{where}: link {link!r} is to be cut in {count} ways; give it one of --tight-link, --decompose and "
                "--fit (tight_links, decompose and fitted_links in robot.yaml)"
            )
    return ways[0] | ways[1] | ways[2]


def could_give(cut: LinkCut, pieces: Sequence[PieceEntry]) -> bool:
    """Whether a link's pieces are such as the cut makes: how many, and hulls or balls.

    Slabs are not told from as many pieces, nor the rules from each other where they may choose alike.
    """
    balls = sum(piece.radius_nm is not None for piece in pieces)
    if cut.fit is None:
        return balls == 0 and len(pieces) == cut.slabs * cut.pieces
    if balls == 0:
        found = "box" if len(pieces) == 1 and len(pieces[0].vertices_nm) == _BOX_CORNERS else None
    else:
        found = {1: "capsule", 2: "chain2", 3: "chain3"}.get(len(pieces)) if balls == len(pieces) else None
    by_rule = cut.fit in ("A", "M", "B") or (cut.fit == "M1" and len(pieces) == 1)
    return found is not None and (by_rule or found == cut.fit)


def told(cut: LinkCut) -> str:
    """`4 pieces`, `fitted with box`, `one hull`: the cut in a sentence."""
    if cut.fit is not None:
        return f"fitted with {cut.fit}"
    if cut.slabs > 1:
        return f"{cut.slabs} slabs"
    return f"{cut.pieces} pieces" if cut.pieces > 1 else "one hull"
