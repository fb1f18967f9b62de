"""Small URDFs, written out where a test needs them."""


def shape(geometry: str) -> str:
    return f"<collision><geometry>{geometry}</geometry></collision>"


BOX = shape("<box size='0.02 0.02 0.1'/>")


def link(name: str, inside: str = BOX) -> str:
    return f"<link name='{name}'>{inside}</link>"


def joint(name: str, kind: str, parent: str, child: str, inside: str = "", xyz: str = "0 0 0.1") -> str:
    return (
        f"<joint name='{name}' type='{kind}'><parent link='{parent}'/><child link='{child}'/>"
        f"<origin xyz='{xyz}'/><axis xyz='1 0 0'/>{inside}</joint>"
    )


def robot(*elements: str) -> str:
    return f"<robot name='r'>{''.join(elements)}</robot>"


def gripper(mimic: str, follower_type: str = "prismatic", leader: str = "<limit lower='0' upper='0.04'/>") -> str:
    """Palm with two prismatic jaws; `mimic` is the follower's <mimic> element."""
    return robot(
        link("palm"),
        link("jaw"),
        link("other"),
        joint("leader", "prismatic", "palm", "jaw", leader),
        joint("follower", follower_type, "palm", "other", mimic, xyz="0 0.1 0.1"),
    )
