"""Fetches the software: Python packages in a virtual environment, unpacked Debian packages."""

import fcntl
import glob
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from .processes import run
from .state import HERE, say

RELEASE = {'nova': '31.3.1', 'keystone': '27.1.0',
           'openstack-placement': '13.0.1', 'glance': '30.2.0'}
DEBS = ['rabbitmq-server', 'mariadb-server-core', 'mariadb-client-core']


def install(bed):
    """Python packages in a virtual environment, Debian packages unpacked."""
    os.makedirs(bed.software, exist_ok=True)
    # Several testbeds may share the software and start at the same time.
    with open(os.path.join(bed.software, '.lock'), 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return install_locked(bed)


def install_locked(bed):
    stamp = os.path.join(bed.software, 'installed.json')
    with open(os.path.join(HERE, 'constraints.txt')) as f:
        want = {'release': RELEASE, 'debs': DEBS, 'constraints': f.read(),
                'place': bed.software, 'python': "the system's, if it can"}
    try:
        with open(stamp) as f:
            if json.load(f) == want:
                return False
    except (OSError, ValueError):
        pass
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(install_python, bed),
                pool.submit(install_debian, bed)]
        for job in jobs:
            job.result()
    with open(stamp, 'w') as f:
        json.dump(want, f)
    return True


def interpreter():
    """Prefers Debian's Python, which is built with all optimisations. The Pythons of
    version managers often are not, which costs the services a sixth more."""
    debian = '/usr/bin/python3'
    fits = 'import ensurepip, sys; sys.exit(sys.version_info < (3, 10))'
    try:
        subprocess.run([debian, '-c', fits], check=True,
                       stderr=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        return sys.executable
    return debian


def install_python(bed):
    venv = os.path.join(bed.software, 'venv')
    python = interpreter()
    if os.path.realpath(os.path.join(venv, 'bin', 'python')) != \
            os.path.realpath(python):
        run(bed, [python, '-m', 'venv', '--clear', venv], log='install')
    say('installing Python packages')
    run(bed, [os.path.join(venv, 'bin', 'pip'), 'install', '-q',
              '--disable-pip-version-check',
              '-c', os.path.join(HERE, 'constraints.txt'),
              'pymysql', 'waitress', 'setuptools'] +
        ['%s==%s' % item for item in RELEASE.items()], log='install')


def install_debian(bed):
    say('unpacking Debian packages')
    cache = os.path.join(bed.software, 'debs')
    os.makedirs(os.path.join(cache, 'partial'), exist_ok=True)
    base = ['-o', 'Dir::Cache::archives=' + cache, '-o', 'Debug::NoLocking=1']
    run(bed, ['apt-get', 'install', '-y', '--no-install-recommends',
              '--reinstall', '--download-only'] + base + DEBS,
        env={'DEBIAN_FRONTEND': 'noninteractive'}, log='install')
    # apt does not download what the machine already has, but all packages of
    # Erlang and of MariaDB must come from one place.
    have = {os.path.basename(d).split('_')[0]
            for d in glob.glob(os.path.join(cache, '*.deb'))}
    out = subprocess.run(
        ['apt-cache', 'depends', '--recurse', '--no-recommends',
         '--no-suggests', '--no-conflicts', '--no-breaks', '--no-replaces',
         '--no-enhances'] + DEBS, capture_output=True, text=True, check=True)
    closure = {line.strip() for line in out.stdout.splitlines()
               if line and not line.startswith((' ', '<'))}
    missing = [p for p in sorted(closure - have)
               if installed(p) and p.startswith(('erlang', 'mariadb',
                                                 'libmariadb'))]
    if missing:
        subprocess.run(['apt-get', 'download'] + missing, cwd=cache,
                       check=True, stdout=subprocess.DEVNULL)
    root = bed.sysroot()
    os.makedirs(root, exist_ok=True)
    for deb in sorted(glob.glob(os.path.join(cache, '*.deb'))):
        run(bed, ['dpkg-deb', '-x', deb, root], log='install')
    # Debian's `erl` contains the path of its own directory.
    for script in glob.glob(os.path.join(root, 'usr/lib/erlang/bin/erl')) + \
            glob.glob(os.path.join(root, 'usr/lib/erlang/erts-*/bin/erl')):
        with open(script) as f:
            text = f.read()
        with open(script, 'w') as f:
            f.write(text.replace('ROOTDIR=/usr/lib/erlang', 'ROOTDIR=' +
                                 os.path.join(root, 'usr/lib/erlang')))


def installed(package):
    res = subprocess.run(['dpkg-query', '-W', '-f', '${Status}', package],
                         capture_output=True, text=True)
    return res.stdout.startswith('install ok')
