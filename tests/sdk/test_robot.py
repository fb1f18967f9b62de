"""Commanding a robot: targets, followers, what a gate accepts and takes back."""

import pytest
import torch

from tests.sdk.fakes import attached, two_finger_description


@pytest.fixture
def coupled():
    return attached(two_finger_description(coupled=True), 3)


@pytest.fixture
def driven():
    return attached(two_finger_description(coupled=False), 3)


def test_a_flat_list_broadcasts_over_environments(driven):
    robot, _ = driven
    robot.set_joint_position_target([0.01, 0.02], joint_ids=robot.find_joints("finger."))
    assert torch.allclose(robot.joint_position_targets, torch.tensor([[0.0, 0.01, 0.02]] * 3))
    robot.set_joint_position_target([0.5], joint_ids=[0], env_ids=[1])
    assert torch.allclose(robot.joint_position_targets[:, 0], torch.tensor([0.0, 0.5, 0.0]))
    robot.set_joint_position_target(torch.tensor([[0.1], [0.2]]), joint_ids=[0], env_ids=[2, 0])
    assert torch.allclose(robot.joint_position_targets[:, 0], torch.tensor([0.2, 0.5, 0.1]))


@pytest.mark.parametrize("shape", [(3,), (1, 3), (3, 3), (3, 1), (2, 2), (4, 2)])
def test_b34_values_of_another_shape_are_refused_and_nothing_is_written(driven, shape):
    robot, _ = driven
    before = robot.joint_position_targets.clone()
    with pytest.raises(ValueError, match=r"\(2,\) or \(3, 2\)"):
        robot.set_joint_position_target(torch.full(shape, 0.01), joint_ids=[1, 2])
    assert torch.equal(robot.joint_position_targets, before)


def test_a_followers_target_is_taken_only_with_its_leaders_and_only_if_they_agree(coupled):
    robot, _ = coupled
    robot.set_joint_position_target([0.03], joint_ids=robot.find_joints("finger1"))
    assert torch.allclose(robot.joint_position_targets[:, 2], torch.tensor(0.03))  # it follows in the buffer too
    robot.set_joint_position_target([0.02, 0.02], joint_ids=robot.find_joints("finger."))
    before = robot.joint_position_targets.clone()
    with pytest.raises(ValueError, match="'finger2' follows 'finger1'"):
        robot.set_joint_position_target([0.01], joint_ids=robot.find_joints("finger2"))
    with pytest.raises(ValueError, match="contradicts its leader 'finger1'"):
        robot.set_joint_position_target([0.01, 0.03], joint_ids=robot.find_joints("finger."))
    with pytest.raises(ValueError, match="'finger2' follows 'finger1'"):
        robot.set_joint_velocity_target([0.01], joint_ids=robot.find_joints("finger2"))
    assert torch.equal(robot.joint_position_targets, before)


def test_all_joints_may_be_set_with_or_without_the_followers(coupled):
    robot, _ = coupled
    robot.set_joint_position_target(torch.tensor([[0.1, 0.01]] * 3))
    robot.set_joint_position_target(torch.tensor([0.2, 0.02, 0.02]))
    assert torch.allclose(robot.joint_position_targets, torch.tensor([[0.2, 0.02, 0.02]] * 3))


def test_limits_of_followers_come_from_their_leaders(coupled):
    robot, _ = coupled
    assert torch.allclose(robot.joint_limits, torch.tensor([[0.0, 1.0], [0.0, 0.04], [0.0, 0.04]]))


def test_commanded_positions_are_clamped_and_keep_what_is_not_finite(driven):
    robot, articulation = driven
    articulation.positions[:] = 0.01
    robot.set_joint_position_target([2.0, -1.0, float("nan")])
    commanded = robot.commanded_positions()
    assert torch.allclose(commanded[:, :2], torch.tensor([1.0, 0.0]))
    assert commanded[:, 2].isnan().all()
    robot.set_joint_position_target([0.02], joint_ids=[2])
    robot.set_joint_velocity_target([0.5], joint_ids=[0])  # 0.01 m measured + 0.5 m/s for 0.02 s
    robot.set_joint_effort_target([3.0], joint_ids=[1], env_ids=[0])
    commanded = robot.commanded_positions()
    assert torch.allclose(commanded[0], torch.tensor([0.02, 0.01, 0.02]))
    assert torch.allclose(commanded[1], torch.tensor([0.02, 0.00, 0.02]))
    robot.set_joint_position_target([0.3], joint_ids=[0])
    assert torch.allclose(robot.commanded_positions()[:, 0], torch.tensor(0.3))


def test_a_target_that_is_not_finite_is_never_handed_over(driven):
    robot, articulation = driven
    robot.set_joint_position_target([float("inf")], joint_ids=[1], env_ids=[2])
    with pytest.raises(ValueError, match="'finger1' in environment 2 is not finite"):
        robot.flush()
    assert not articulation.written
    robot.set_joint_position_target([0.01], joint_ids=[1], env_ids=[2])
    robot.flush()
    assert len(articulation.written) == 1


def test_refused_commands_go_back_to_the_accepted_ones_or_to_where_the_robot_is(driven):
    robot, articulation = driven
    only = lambda *envs: torch.tensor([env in envs for env in range(3)])  # noqa: E731
    articulation.positions[:] = torch.tensor([0.3, 0.01, 0.02])
    robot.set_joint_position_target([0.4, 0.0, 0.0])
    robot.accept_commands(only(0))
    robot.restore_commands(only(1))
    assert torch.allclose(robot.joint_position_targets[1], torch.tensor([0.3, 0.01, 0.02]))
    assert torch.allclose(robot.joint_position_targets[2], torch.tensor([0.4, 0.0, 0.0]))
    robot.set_joint_position_target([0.9, 0.04, 0.04])
    robot.set_joint_velocity_target([1.0], joint_ids=[0], env_ids=[0])
    robot.restore_commands(only(0))
    assert torch.allclose(robot.commanded_positions()[0], torch.tensor([0.4, 0.0, 0.0]))
    assert torch.allclose(robot.joint_position_targets[1], torch.tensor([0.9, 0.04, 0.04]))


def test_reset_forgets_what_was_accepted_and_touches_only_its_environments(driven):
    robot, articulation = driven
    robot.set_joint_position_target([0.4, 0.01, 0.02])
    robot.accept_commands(torch.ones(3, dtype=torch.bool))
    articulation.positions[:] = 0.03
    others = robot.joint_position_targets[[0, 2]].clone()
    robot.reset([1])
    assert torch.equal(articulation.positions[1], torch.zeros(3))
    assert torch.equal(articulation.positions[[0, 2]], torch.full((2, 3), 0.03))
    assert torch.equal(robot.joint_position_targets[[0, 2]], others)
    articulation.positions[1] = 0.01
    robot.set_joint_position_target([0.5, 0.0, 0.0])
    robot.restore_commands(torch.tensor([False, True, False]))
    assert torch.allclose(robot.joint_position_targets[1], torch.tensor(0.01))
    robot.reset([])
    assert torch.allclose(robot.joint_position_targets[0], torch.tensor([0.5, 0.0, 0.0]))


def test_b43_views_are_read_right_and_the_callers_tensor_is_never_written(driven):
    robot, _ = driven
    table = torch.arange(12.0).view(4, 3)[:3] / 100
    for view in (table[:, 1:], table.flip(0)[:, :2], table[:, :1].expand(3, 2), table.t()[:2].t()):
        copy = view.clone().contiguous()
        robot.set_joint_position_target(view, joint_ids=[1, 2])
        assert torch.equal(robot.joint_position_targets[:, 1:], copy)
    robot.set_joint_position_target(table[:, -1:].clone(), joint_ids=[0])  # a temporary, gone before it is used
    assert torch.equal(robot.joint_position_targets[:, 0], table[:, -1])
    robot.joint_position_targets.zero_()
    assert torch.equal(table, torch.arange(12.0).view(4, 3)[:3] / 100)


@pytest.mark.parametrize("values", [None, [True] * 3, ["a"] * 3, torch.ones(3, dtype=torch.complex64)])
def test_targets_that_are_no_numbers_are_refused(driven, values):
    robot, _ = driven
    before = robot.joint_position_targets.clone()
    with pytest.raises(TypeError, match="position targets must be integers or floats"):
        robot.set_joint_position_target(values)
    assert torch.equal(robot.joint_position_targets, before)


def test_a_robot_belongs_to_one_environment(driven):
    robot, articulation = driven
    with pytest.raises(RuntimeError, match="already belongs"):
        robot.attach(articulation, control_dt=0.02)
