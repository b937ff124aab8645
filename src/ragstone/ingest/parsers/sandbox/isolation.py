"""Start a child for untrusted content: our interpreter, our import path, nothing else of ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def start_isolated(module: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Run `main` of a module, which finds the arguments behind the name of the program, on two pipes."""
    # It has no site packages of its own: the parent's import path comes behind the arguments.
    boot = f"import sys; sys.path[:] = sys.argv[{len(arguments) + 1}:]; from {module} import main; main()"
    return subprocess.Popen(  # noqa: S603  (our own interpreter, our own arguments)
        [
            *(sys.executable, "-I", "-S", "-B", "-X", "utf8", "-c", boot),
            *arguments,
            *(str(Path(entry).absolute()) for entry in sys.path if entry),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_environment(),
        cwd=Path("/"),
        close_fds=True,
        start_new_session=True,
        bufsize=0,
    )


def _environment() -> dict[str, str]:
    """Nothing of the parent's but where programs are; one thread and one heap, or each core maps memory of its own.

    What reads pictures would tell its maker of this machine, unless told not to.
    """
    return {
        "MALLOC_ARENA_MAX": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "ORT_DISABLE_TELEMETRY": "1",
        "PATH": os.environ.get("PATH", os.defpath),
    }
