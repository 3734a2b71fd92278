"""Which programs have passed on this machine, by digest: of those whose result depends on nothing but themselves.

Only for programs that compute: not for one that uses servers, files or time, because it may fail next time.
"""

import hashlib
import os
import time

# Stamps that no run has used for so long are removed.
DAYS = 60


class Stamps:
    """The folder of stamps. `again`: none of them counts in this run."""

    def __init__(self, cache, again):
        self.folder = os.path.join(cache, 'passed')
        self.again = again

    def key(self, file, words, inputs):
        """The digest of a program, its arguments and the files that it reads, on this machine."""
        whole = hashlib.sha256()
        files = sorted(below(inputs))
        for part in [machine(), *words, *files]:
            whole.update(part.encode() + b'\0')
        for path in [file, *files]:
            with open(path, 'rb') as opened:
                whole.update(hashlib.file_digest(opened, 'sha256').digest())
        return whole.hexdigest()

    def passed(self, key):
        """When the program with this key has passed; empty: it has not."""
        path = os.path.join(self.folder, key)
        if self.again or not os.path.exists(path):
            return ''
        os.utime(path, (time.time(), os.stat(path).st_mtime))
        return time.strftime('%Y-%m-%d %H:%M', time.localtime(os.stat(path).st_mtime))

    def stamp(self, key):
        os.makedirs(self.folder, exist_ok=True)
        with open(os.path.join(self.folder, key), 'w'):
            pass
        for entry in os.scandir(self.folder):
            if entry.stat().st_atime < time.time() - DAYS * 24 * 3600:
                os.remove(entry.path)


def machine():
    """A cache that was copied to another machine proves nothing there. Where a machine has no name, its stamps end when
    it starts again."""
    for path in ('/etc/machine-id', '/proc/sys/kernel/random/boot_id'):
        try:
            with open(path) as file:
                if name := file.read().strip():
                    return name
        except FileNotFoundError:
            pass
    return str(time.time())


def below(paths):
    """All files below these folders."""
    for path in paths:
        if os.path.isfile(path):
            yield path
        for folder, _, names in os.walk(path):
            yield from (os.path.join(folder, name) for name in names)
