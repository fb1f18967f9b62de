"""One rule for commands on every path: numbers that lie by a few roundings of a threshold, in every form they come in.

Both grippers decode with the functions asked here. What is right is worked out with exact fractions: a number, as its
precision has it, against the threshold as that precision has it.
"""

from fractions import Fraction

import numpy as np
import pytest
import torch

from simulo.actuators.commands import CommandRule, decode_each, decode_one

COUNT = 400


def near(threshold: float, kind: type, rng: np.random.Generator) -> np.ndarray:
    """Numbers of this precision from three below the threshold to three above it, and some farther off."""
    value, steps = kind(threshold), []
    for direction in (-np.inf, np.inf):
        stepped = value
        for _ in range(3):
            stepped = np.nextafter(stepped, kind(direction))
            steps.append(stepped)
    pool = np.array([value, *steps, kind(0.0), kind(-1.0), kind(1.0), kind(2.5)], dtype=kind)
    return rng.choice(pool, COUNT)


def expected(values: np.ndarray, rule: CommandRule, kind: type) -> list[int]:
    low, high = (Fraction(float(kind(t))) for t in (rule.open_threshold, rule.close_threshold))
    compared = [Fraction(float(kind(value))) for value in values]
    return [int(value > high) - int(value < low) for value in compared]


@pytest.mark.parametrize("seed", range(8))
def test_every_path_follows_it(seed):
    rng = np.random.default_rng(seed)
    low, high = sorted(rng.choice([-0.3, 0.3, -0.1, 0.1, 0.7, *rng.uniform(-1, 1, 3)], 2, replace=False).tolist())
    rule = CommandRule(low, high, refuses_not_finite=True)
    for threshold in (low, high):
        for kind in (np.float16, np.float32, np.float64):
            values = near(threshold, kind, rng)
            compared_as = np.float16 if kind is np.float16 else np.float32
            right = expected(values, rule, compared_as)
            assert decode_each(values, COUNT, "", rule).tolist() == right, "array"
            assert decode_each(list(values), COUNT, "", rule).tolist() == right, "list of NumPy numbers"
            assert [decode_one(value, 1, rule) for value in values] == right, "one by one"
            own = expected(values, rule, kind)
            tensor = torch.from_numpy(values)
            assert decode_each(tensor, COUNT, "", rule).tolist() == own, "tensor"
            assert decode_each(tensor.flip(0)[::2], COUNT // 2, "", rule).tolist() == own[::-2], "strided tensor"
            assert decode_each(list(tensor), COUNT, "", rule).tolist() == own, "list of tensors"
            assert [decode_one(value, 1, rule) for value in tensor] == own, "one tensor by one"
            if kind is np.float64:
                assert decode_each(values.tolist(), COUNT, "", rule).tolist() == right, "list of Python numbers"


def test_bfloat16_compares_in_its_own_precision():
    """Which NumPy does not know: eight bits of 0.3 are 0.30078125, and the next ones are 2 ** -9 away."""
    rule = CommandRule(-0.3, 0.3, refuses_not_finite=True)
    values = torch.tensor(
        [0.30078125 + 2.0**-9, 0.30078125, 0.298828125, -0.30078125, -0.302734375], dtype=torch.bfloat16
    )
    assert decode_each(values, 5, "", rule).tolist() == [1, 0, 0, 0, -1]
    assert decode_each(values.float(), 5, "", rule).tolist() == [1, 1, 0, -1, -1]
