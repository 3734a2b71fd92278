"""Starts jobs as soon as what they need is there and their lane is free, and prints the output of each that ends."""

import os
import selectors
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from . import meter


@dataclass(eq=False)
class Job:
    """A command in a lane. A lane runs one job at a time: the first that has all it needs."""
    name: str
    lane: str
    # Or a function that returns it, called when the job starts.
    command: list | Callable
    # Names of jobs that have passed, or of what `reads` of a job returned.
    needs: set = field(default_factory=set)
    folder: str = '.'
    variables: dict = field(default_factory=dict)
    nice: int = 0
    # Gets each line of its standard output, and returns the names of what is there from then on. They begin with
    # `makes`.
    reads: Callable | None = None
    makes: str = ''
    # Why it need not run, if so; called when it could start.
    skips: Callable | None = None
    # Called when it has passed.
    passed: Callable | None = None


@dataclass
class Result:
    """`state`: passed, failed, skipped or not run."""
    job: Job
    state: str
    begin: float = 0
    wall: float = 0
    cpu: float = 0
    why: str = ''
    output: str = ''


@dataclass(eq=False)
class Running:
    """A job's process, and the descriptors that say when it writes a line and when it ends."""
    job: Job
    pid: int
    begin: float
    output: str
    lines: int | None
    ends: int
    partial: bytes = b''


class Schedule:
    """The jobs of one run."""

    def __init__(self, jobs):
        self.begin = time.monotonic()
        self.waiting = list(jobs)
        self.running = []
        self.results = []
        self.there = set()
        self.events = selectors.DefaultSelector()
        self.outputs = tempfile.mkdtemp(prefix='scupper-tests-')

    def elapsed(self):
        return time.monotonic() - self.begin

    def run(self):
        """Runs all jobs to their ends, and returns their results in the order of the ends."""
        try:
            while self.waiting or self.running:
                if not self._start_one():
                    self._wait()
        finally:
            self._end()
        return self.results

    def _start_one(self):
        """Starts or skips one job; false if none can be now."""
        busy = {running.job.lane for running in self.running}
        for job in self.waiting:
            missing = job.needs - self.there
            lost = sorted(need for need in missing if not self._will_be_there(need))
            if lost:
                self._over(Result(job, 'not run', why=f'{lost[0]} is missing'))
                return True
            if not missing and job.lane not in busy:
                why = job.skips() if job.skips else ''
                self._over(Result(job, 'skipped', why=why)) if why else self._begin(job)
                return True
        return False

    def _will_be_there(self, need):
        jobs = self.waiting + [running.job for running in self.running]
        return any(job.name == need or (job.makes and need.startswith(job.makes)) for job in jobs)

    def _begin(self, job):
        self.waiting.remove(job)
        handle, output = tempfile.mkstemp(dir=self.outputs)
        os.close(handle)
        lines, theirs = os.pipe() if job.reads else (None, None)
        begin = time.monotonic()
        command = job.command() if callable(job.command) else job.command
        pid = meter.start(command, output, job.folder, {**os.environ, **job.variables}, job.nice, theirs)
        running = Running(job, pid, begin, output, lines, os.pidfd_open(pid))
        self.running.append(running)
        self.events.register(running.ends, selectors.EVENT_READ, running)
        if lines:
            os.close(theirs)
            self.events.register(lines, selectors.EVENT_READ, running)

    def _wait(self):
        for key, _ in self.events.select():
            if key.fd == key.data.lines:
                self._read(key.data)
            elif key.data.lines is None:
                self._ended(key.data)

    def _read(self, running):
        text = os.read(running.lines, 1 << 16)
        *lines, running.partial = (running.partial + text).split(b'\n')
        for line in lines:
            self.there |= set(running.job.reads(line))
        if not text:
            self._close(running.lines)
            running.lines = None

    def _close(self, descriptor):
        self.events.unregister(descriptor)
        os.close(descriptor)

    def _ended(self, running):
        self._close(running.ends)
        self.running.remove(running)
        code, cpu = meter.wait(running.pid)
        state = 'failed' if code else 'passed'
        wall = time.monotonic() - running.begin
        with open(running.output, errors='replace') as file:
            output = file.read()
        os.remove(running.output)
        self._over(Result(running.job, state, running.begin - self.begin, wall, cpu, output=output))

    def _over(self, result):
        job = result.job
        if job in self.waiting:
            self.waiting.remove(job)
        self.results.append(result)
        if result.state in ('passed', 'skipped'):
            self.there.add(job.name)
        if result.state == 'passed' and job.passed:
            job.passed()
        took = f' after {result.wall:.1f} s, {result.cpu:.1f} s of CPU'
        words = f'{result.state}: {result.why}' if result.why else result.state + took
        print(f'\n== {job.name}: {words}\n{result.output}', end='', flush=True)

    def _end(self):
        """An interrupted run must not leave servers behind."""
        for running in self.running:
            os.kill(running.pid, signal.SIGTERM)
        for running in self.running:
            os.waitpid(running.pid, 0)
        shutil.rmtree(self.outputs)
