"""Gripper commands: what counts as one, and what it asks for."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simulo.actuators.states import GripperState


class GripperCommand(float, Enum):
    """Positive closes. (Binary gripper actions elsewhere often have it the other way round: flip those knowingly.)"""

    OPEN = -1.0
    IDLE = 0.0
    CLOSE = 1.0


Command = GripperCommand | float
NOT_FINITE = 2  # what a command asks for that is not finite, where such a command is not refused
_POLARITY = "a gripper command is a number: -1 opens, 0 is idle, +1 closes (elsewhere True often means open)"
_SHOWN = 8
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class CommandRule:
    """Below open_threshold a command opens, above close_threshold it closes, and any other is idle.

    refuses_not_finite: raise ValueError for NaN and infinities, or else decode them as `NOT_FINITE`.
    """

    open_threshold: float
    close_threshold: float
    refuses_not_finite: bool


def decode_one(command: Command | Tensor, num_envs: int, rule: CommandRule) -> int:
    """-1, 0 or +1 for one command meant for every environment: a number, or a tensor or sequence of one value."""
    if isinstance(command, (Tensor, np.ndarray)):
        count = command.numel() if isinstance(command, Tensor) else command.size
        if count != 1:
            raise ValueError(
                f"set_command takes one value, got shape {tuple(command.shape)}; use set_commands for one each"
            )
        command = command.reshape(())
    elif isinstance(command, Sequence) and not isinstance(command, (str, bytes)):
        if len(command) != 1:
            raise ValueError(
                f"set_command takes one value, got {len(command)}; use set_commands for one per environment"
            )
        command = command[0]
    return int(_decode_list([command], rule, range(num_envs))[0])


def decode_each(commands: Sequence[Command] | Tensor | NDArray, num_envs: int, note: str, rule: CommandRule) -> Tensor:
    """-1, 0 or +1 per environment, int8, shape (num_envs,), from one command each. Never writes to `commands`.

    note: added to a message about a wrong count. Raises TypeError for what is no command (bool, GripperState),
    ValueError for another shape or count, and for values that are not finite, naming environments.
    """
    if isinstance(commands, np.ndarray):
        _check_count(commands.shape, num_envs, note)
        if commands.dtype.kind in "biuf":
            commands = torch.from_numpy(_as_singles(commands))
        else:  # what may hold anything
            commands = list(commands)
    if isinstance(commands, Tensor):
        _check_count(tuple(commands.shape), num_envs, note)
        return _decode_tensor(commands.detach(), rule)
    if isinstance(commands, (str, bytes)) or not isinstance(commands, Sequence):
        raise TypeError(
            f"set_commands takes a list or tensor of {num_envs} commands, got {type(commands).__name__}; "
            "set_command takes one for all"
        )
    _check_count((len(commands),), num_envs, note)
    intents = _decode_list(commands, rule)
    return torch.tensor(intents, dtype=torch.int8)


def _check_count(shape: tuple[int, ...], num_envs: int, note: str) -> None:
    if shape != (num_envs,):
        raise ValueError(
            f"set_commands needs shape ({num_envs},) for {num_envs} environments{note}, got {shape}; "
            "pass one column of the actions, such as actions[:, -1]"
        )


def _decode_tensor(values: Tensor, rule: CommandRule) -> Tensor:
    """Floating tensors are compared in their own precision, so that a half-precision 0.3 equals a threshold of 0.3."""
    if values.dtype == torch.bool:
        raise TypeError(f"commands are a bool tensor; {_POLARITY}")
    if values.is_complex():
        raise TypeError(f"commands are complex; {_POLARITY}")
    if not values.is_floating_point():
        values = values.to(torch.float32)
    low, high = (_rounded(threshold, values.dtype) for threshold in (rule.open_threshold, rule.close_threshold))
    if values.dtype.itemsize == 1:  # such floats have no comparison of their own
        values = values.to(torch.float32)
    intent = (values > high).to(torch.int8) - (values < low).to(torch.int8)
    finite = torch.isfinite(values)
    if not rule.refuses_not_finite:
        return intent.masked_fill(~finite, NOT_FINITE)
    if not finite.all():
        _refuse_not_finite((~finite).nonzero().flatten().tolist())
    return intent


@cache
def _rounded(threshold: float, dtype: torch.dtype) -> float:
    """The threshold as `dtype` has it."""
    return float(torch.tensor(threshold, dtype=dtype))


def _decode_list(commands: Sequence, rule: CommandRule, everywhere: Sequence[int] = ()) -> list[int]:
    """everywhere: the environments that a single command is for; otherwise there is one command each."""
    values = [_number(command, position) for position, command in enumerate(commands)]
    wrong = [position for position, value in enumerate(values) if not math.isfinite(value)]
    if wrong and rule.refuses_not_finite:
        _refuse_not_finite(everywhere or wrong)
    return [_intent(value, rule) for value in values]


def _number(command: object, position: int) -> float | Tensor:
    """The command itself, once it is known to be one number."""
    if isinstance(command, np.ndarray) and command.ndim == 0:
        command = command[()]
    if isinstance(command, GripperState):
        raise TypeError(f"command {position} is {command!r}, a state to read; commands are GripperCommand or numbers")
    if isinstance(command, (bool, np.bool_)) or (isinstance(command, Tensor) and command.dtype == torch.bool):
        raise TypeError(f"command {position} is the bool {command!r}; {_POLARITY}")
    if isinstance(command, (Sequence, np.ndarray, Tensor)) and not isinstance(command, str) and np.ndim(command) > 0:
        shape = tuple(command.shape) if isinstance(command, Tensor) else np.shape(command)
        raise ValueError(f"command {position} has shape {shape}; a list holds one number per environment")
    if isinstance(command, Tensor):
        if command.is_complex():
            raise TypeError(f"command {position} is complex; {_POLARITY}")
        return command.detach()
    if not isinstance(command, numbers.Real):
        raise TypeError(f"command {position} is {type(command).__name__}; {_POLARITY}")
    if isinstance(command, int):  # of which there are some that no float can be
        return float(min(max(command, -int(_LARGEST)), int(_LARGEST)))
    return cast(float, command)


def _intent(value: float | Tensor, rule: CommandRule) -> int:
    """Compared in half precision where it came so, and in single precision otherwise."""
    if isinstance(value, Tensor):
        return int(_decode_tensor(value.reshape(1), rule)[0])
    if not math.isfinite(value):
        return NOT_FINITE
    if type(value) is np.float16:
        dtype, compared = torch.float16, float(value)
    else:
        dtype, compared = torch.float32, float(np.float32(min(max(float(value), -_LARGEST), _LARGEST)))
    low, high = (_rounded(threshold, dtype) for threshold in (rule.open_threshold, rule.close_threshold))
    return int(compared > high) - int(compared < low)


def _as_singles(values: NDArray) -> NDArray:
    """A copy in single precision, in which a finite number stays finite; bools and halves as they are."""
    if values.dtype in (np.bool_, np.float16, np.float32):
        return np.array(values)
    largest = np.where(np.isfinite(values), _LARGEST, np.inf)
    return np.clip(values, -largest, largest).astype(np.float32)


def _refuse_not_finite(envs: Sequence[int]) -> None:
    more = f" and {len(envs) - _SHOWN} more" if len(envs) > _SHOWN else ""
    raise ValueError(f"gripper commands are not finite in environments {[*envs[:_SHOWN]]}{more}; nothing was changed")
