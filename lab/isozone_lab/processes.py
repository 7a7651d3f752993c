"""Child programs: none outlives the lab, also where that is killed, and one that fails says how it was called and what
it said last."""
import ctypes
import os
import shlex
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence

Environment = Mapping[str, str]  # variables that are added to those of the lab
LAST_LINES = 12
PR_SET_PDEATHSIG = 1  # linux/prctl.h
LIBC = ctypes.CDLL(None)  # loaded here, since little may be done between fork and exec


class RunFailed(Exception):
    """A run has no result; the message is for people."""


def last_lines(text: str, count: int = LAST_LINES) -> str:
    return "\n".join(text.strip().splitlines()[-count:])


def shown(command: Sequence[str], environment: Environment | None = None) -> str:
    """The command as one would type it."""
    variables = "".join(f"{name}={shlex.quote(value)} " for name, value in (environment or {}).items())
    return variables + shlex.join(command)


def dies_with(parent: int) -> Callable[[], None]:
    """What a child of the process `parent` is to do first (preexec_fn of Popen): the kernel kills it when the thread
    that started it ends, however that may be."""
    def prepare() -> None:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # ended before the kernel was told
            os.kill(os.getpid(), signal.SIGKILL)
    return prepare


def end_group(child: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
    """Ends `child`, which leads its session, and what it started."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()


def kill(child: subprocess.Popen[str]) -> None:
    """Ends a child and everything it started."""
    end_group(child)
    for pipe in (child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()


def run(command: Sequence[str], environment: Environment | None = None, time_limit_s: float = 600) -> str:
    """Standard output of a program that must succeed."""
    try:
        child = subprocess.Popen(command, env={**os.environ, **(environment or {})}, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                                 preexec_fn=dies_with(os.getpid()))
    except OSError as error:
        raise RunFailed(f"{command[0]}: {error.strerror}") from error
    try:
        output, errors = child.communicate(timeout=time_limit_s)
    except subprocess.TimeoutExpired as error:
        kill(child)
        raise RunFailed(f"stopped after {time_limit_s} s: {shown(command, environment)}") from error
    except BaseException:
        kill(child)
        raise
    if child.returncode != 0:
        raise RunFailed(f"exit code {child.returncode}: {shown(command, environment)}\n{last_lines(output + errors)}")
    return output
