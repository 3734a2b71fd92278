"""Starts, finds and ends processes, each in its own session."""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error

from .state import Failure


def start_time(pid):
    try:
        with open('/proc/%d/stat' % pid) as f:
            fields = f.read().rsplit(')', 1)[1].split()
    except (OSError, IndexError):
        return None
    return None if fields[0] == 'Z' else fields[19]


def record(bed, name):
    try:
        with open(bed.path('run', name + '.json')) as f:
            return json.load(f)
    except (OSError, ValueError):
        return None


def alive(bed, name):
    rec = record(bed, name)
    return bool(rec) and start_time(rec['pid']) == rec['start']


def spawn(bed, name, argv, env=None, cwd=None):
    if alive(bed, name):
        return False
    log = open(bed.path('log', name + '.log'), 'ab')
    full = dict(os.environ)
    full.update(env or {})
    proc = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log,
                            stderr=log, env=full, cwd=cwd or bed.dir,
                            start_new_session=True)
    log.close()
    write_record(bed, name, proc.pid)
    return True


def write_record(bed, name, pid):
    with open(bed.path('run', name + '.json'), 'w') as f:
        json.dump({'pid': pid, 'start': start_time(pid)}, f)
    bed.started = getattr(bed, 'started', set()) | {name}


def session_members(sid):
    found = []
    for entry in os.listdir('/proc'):
        if not entry.isdigit():
            continue
        try:
            with open('/proc/%s/stat' % entry) as f:
                fields = f.read().rsplit(')', 1)[1].split()
        except (OSError, IndexError):
            continue
        if fields[0] != 'Z' and fields[3] == str(sid):
            found.append(int(entry))
    return found


def stop(bed, name, grace=15):
    """Ends one process that this script started, and its children."""
    rec = record(bed, name)
    if rec and start_time(rec['pid']) == rec['start']:
        for sig, wait in ((signal.SIGTERM, grace), (signal.SIGKILL, 5)):
            # Each of them has its own session.
            for pid in session_members(rec['pid']):
                try:
                    os.kill(pid, sig)
                except ProcessLookupError:
                    pass
            until = time.monotonic() + wait
            while session_members(rec['pid']) and time.monotonic() < until:
                time.sleep(0.2)
            if not session_members(rec['pid']):
                break
    try:
        os.unlink(bed.path('run', name + '.json'))
    except FileNotFoundError:
        pass


def run(bed, argv, env=None, stdin=None, log='setup', ok=(0,)):
    full = dict(os.environ)
    full.update(env or {})
    with open(bed.path('log', log + '.log'), 'ab') as out:
        res = subprocess.run(argv, stdin=stdin or subprocess.DEVNULL,
                             stdout=out, stderr=out, env=full)
    if res.returncode not in ok:
        raise Failure('%s failed (%d), see log/%s.log' % (
            os.path.basename(argv[0]), res.returncode, log))


def wait_for(what, check, seconds, bed=None, name=None, every=0.1):
    until = time.monotonic() + seconds
    while True:
        try:
            if check():
                return
        except (OSError, urllib.error.URLError, Failure):
            pass
        for child in [name] if name else getattr(bed, 'started', ()):
            if bed is not None and not alive(bed, child):
                raise Failure('%s ended, see log/%s.log' % (child, child))
        if time.monotonic() > until:
            raise Failure('%s is not ready after %d s' % (what, seconds))
        time.sleep(every)


def listening(port):
    with socket.socket() as s:
        s.settimeout(0.5)
        return s.connect_ex(('127.0.0.1', port)) == 0
