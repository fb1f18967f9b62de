"""validate_actions=False: what is not finite goes to the gate, and stops its own environment there."""

import pytest
import torch

import simulo


class Hand(simulo.Task):
    """The one action is the right gripper's command."""

    observation_dim, action_dim = 1, 1

    def build(self, scene):
        self.robot = simulo.Robot(asset="openarm")
        scene.add(self.robot, at="/World/Robot")

    def on_start(self, env):
        self.gripper = simulo.ParallelGripperActuator(
            self.robot,
            "openarm_right_finger_joint.*",
            open_width=-0.7854,
            position_tolerance=0.02,
            velocity_tolerance=0.1,
        )

    def apply_actions(self, actions):
        self.gripper.set_commands(actions[:, -1])

    def get_observations(self):
        self.gripper.update(self.env.dt)
        return self.gripper.state[:, None].float()

    def reset_idx(self, env_ids):
        self.gripper.reset(env_ids)


@pytest.mark.parametrize("on_stop", ["hold", "terminate"])
def test_a_command_that_is_not_finite_stops_its_environment_and_no_other(on_stop):
    gate = simulo.CollisionGate("openarm", world="none", on_stop=on_stop)
    env = simulo.LearningEnv(Hand(), num_envs=3, gate=gate, validate_actions=False)
    env.reset(seed=0)
    env.step(torch.tensor([[1.0], [1.0], [-1.0]]))
    targets = env.task.robot.joint_position_targets.clone()
    *_, terminated, _, info = env.step(torch.tensor([[0.0], [torch.nan], [0.0]]))
    verdict = info["gate"]
    assert verdict.clear.tolist() == [True, False, True]
    assert verdict.kind_name(1) == "non_finite"
    assert terminated.tolist() == [False, on_stop == "terminate", False]
    now = env.task.robot.joint_position_targets
    assert torch.equal(now[[0, 2]], targets[[0, 2]])
    assert torch.isfinite(now).all()
    if on_stop == "hold":
        assert torch.equal(now[1], targets[1])
        assert env.task.gripper.state[1] != simulo.GripperState.OPEN  # the close command before it still stands


def test_without_a_gate_nothing_that_is_not_finite_reaches_physics():
    env = simulo.LearningEnv(Hand(), num_envs=2, validate_actions=False)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="openarm_right_finger_joint1.*environment 1 is not finite"):
        env.step(torch.tensor([[1.0], [torch.inf]]))
