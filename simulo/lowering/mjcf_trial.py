"""Run as a program: compile an MJCF file under limits. Exit code 0: MuJoCo accepts it, or refuses it in words.

2: out of memory. Anything else, and any signal: it broke down. Arguments: the file, seconds of processor time, bytes.
"""

import resource
import sys

import mujoco

_OUT_OF_MEMORY = ("Could not allocate memory", "unknown exception")
"""What MuJoCo says when an allocation fails: its own, and a C++ one that its bindings do not know."""


def main(path: str, seconds: int, size: int) -> int:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    mujoco.set_mju_user_warning(lambda message: None)
    try:
        spec = mujoco.MjSpec.from_file(path)
        spec.compiler.usethread = 0
        spec.compile()
    except MemoryError:
        return 2
    except (ValueError, RuntimeError, mujoco.FatalError) as error:
        return 2 if any(words in str(error) for words in _OUT_OF_MEMORY) else 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
