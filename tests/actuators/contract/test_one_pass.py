"""An update of both grippers is one pass over all environments: it waits for no device, and loops over none of them."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.actuators.contract.rigs import RIGS

# What reads a number back from a device, or carries one there.
WAITS = ("_local_scalar_dense", "nonzero", "is_nonzero", "equal", "masked_select", "unique", "lift_fresh", "item")


class Operations(TorchDispatchMode):
    """The names of the tensor operations, and copies from one device to another."""

    def __init__(self):
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.name().removeprefix("aten::"))
        result = func(*args, **(kwargs or {}))
        if self.names[-1].startswith("_to_copy") and result.device != args[0].device:
            self.names.append("copied to another device")
        return result


@pytest.fixture(params=sorted(RIGS))
def make(request):
    return RIGS[request.param]


def operations(make, num_envs: int) -> list[str]:
    """Of the second update and reading the state; the first may prepare what the others use."""
    rig = make(num_envs)
    rig.gripper.set_command(1.0)
    for _ in range(2):
        rig.step()
        with Operations() as seen:
            rig.gripper.update(0.02)
            assert rig.gripper.state.shape == (num_envs,)
    return seen.names


def test_an_update_waits_for_no_device(make):
    names = operations(make, 8)
    assert len(names) > 10
    assert [name for name in names if name.split(".")[0] in (*WAITS, "copied to another device")] == []


def test_it_takes_no_more_operations_for_more_environments(make):
    assert operations(make, 2) == operations(make, 16_384)


def test_what_waits_would_be_seen():
    with Operations() as seen:
        bool(torch.ones(3).all())
        torch.ones(3).nonzero()
        torch.tensor([1.0])
    assert {name.split(".")[0] for name in seen.names} >= {"_local_scalar_dense", "nonzero", "lift_fresh"}
