"""Runs one command and measures it: wall time, and the CPU time of all its descendants.

A supervising process stands between this one and the command. Servers that a test starts in sessions of their own become
its children when the test ends: so their CPU time is counted, and an interrupted run ends them as well.
"""

import ctypes
import os
import signal
import subprocess
import time
import traceback

SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
# Servers of a test end with it, but not in the same moment.
PATIENCE = 30


class Interrupted(Exception):
    """The whole run ends."""


def start(command, output, folder, variables, nice, lines=None):
    """Starts the command with its output in a file; returns the pid of its supervisor, a process group. `lines`: a
    descriptor for its standard output instead."""
    pid = os.fork()
    if pid:
        os.setpgid(pid, pid)
        return pid
    code = 125
    try:
        code = _supervise(command, output, folder, variables, nice, lines)
    except BaseException:
        with open(output, 'a') as file:
            traceback.print_exc(file=file)
    finally:
        os._exit(code)


def wait(pid):
    """The exit code and the CPU seconds of an ended supervisor and of all that it has waited for."""
    _, status, usage = os.wait4(pid, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime


def _supervise(command, output, folder, variables, nice, lines):
    os.setpgid(0, 0)
    ctypes.CDLL(None, use_errno=True).prctl(SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _interrupt)
    os.nice(nice)
    with open(output, 'ab') as file:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=lines or file, stderr=file, cwd=folder,
                                 env=variables)
    if lines:
        os.close(lines)
    try:
        code = _ended(child.pid)
    except Interrupted:
        _end_all()
        return 130
    left = _left()
    if left:
        with open(output, 'a') as file:
            print(f'still running {PATIENCE} s after it had ended, and ended now: {", ".join(left)}', file=file)
        _end_all()
    return code


def _interrupt(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Interrupted


def _ended(wanted):
    """Waits for the command, and meanwhile for orphans that came here."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == wanted:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _left():
    """Waits until no descendant is left; the names of those that do not end."""
    until = time.monotonic() + PATIENCE
    while _reaped() and time.monotonic() < until:
        time.sleep(0.02)
    return [name for name, _ in _descendants().values()]


def _reaped():
    """Takes in children that have ended; false if there is none any more."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return True
    except ChildProcessError:
        return False


def _end_all():
    """TERM first: some remove their directories, mounts and namespaces."""
    for sent, patience in ((signal.SIGTERM, 10), (signal.SIGKILL, 10)):
        until = time.monotonic() + patience
        for pid in _descendants():
            try:
                os.kill(pid, sent)
            except ProcessLookupError:
                pass
        while _reaped() and time.monotonic() < until:
            time.sleep(0.05)


def _descendants():
    """Name and parent of all processes below this one."""
    known = {}
    for entry in os.listdir('/proc'):
        try:
            with open(f'/proc/{entry}/stat') as file:
                before, after = file.read().rsplit(')', 1)
        except (OSError, ValueError):
            continue
        known[int(before.split(' ', 1)[0])] = (before.split('(', 1)[1], int(after.split()[1]))
    below, added = {}, {os.getpid()}
    while added:
        found = {pid: it for pid, it in known.items() if it[1] in added}
        below.update(found)
        added = set(found)
    return below
