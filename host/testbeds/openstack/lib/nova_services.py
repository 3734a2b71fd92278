"""Start Nova's services: one process imports Nova, and each service is a fork of it.

Half of what a Nova service needs for its start is reading its modules, and
these are the same for all.  Reads a JSON object a line: `argv` as the service
is to see it, `log`, and `main`, the module to run.  The fork for it goes into a
session of its own and answers with its process id.
"""

import importlib
import json
import os
import sys

import nova.cmd.compute   # does the monkey patching first
import eventlet.hubs
import nova.virt

# Nova loads virt drivers from its own `nova.virt` package only.
nova.virt.__path__.append(os.path.dirname(os.path.abspath(__file__)))

# What all import later.  No more of Nova: its managers take the intervals of
# their periodic tasks from the configuration when they are imported, and that
# is read in the forks.
SHARED = [
    'glanceclient.v2.client', 'keystonemiddleware.auth_token',
    'nova.cmd.api_os_compute', 'nova.cmd.conductor', 'nova.cmd.scheduler',
    'oslo_messaging._drivers.impl_rabbit', 'pymysql',
    'sqlalchemy.dialects.mysql.pymysql']


def become(service):
    os.setsid()
    # An epoll descriptor that is shared wakes all for each.
    eventlet.hubs.use_hub()
    os.write(1, b'%d\n' % os.getpid())
    log = os.open(service['log'], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, place in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(descriptor, place)
    os.close(log)
    os.close(nothing)
    sys.argv = service['argv']
    sys.exit(importlib.import_module(service['main']).main())


if __name__ == '__main__':
    for name in SHARED:
        importlib.import_module(name)
    for line in sys.stdin.buffer:
        if os.fork() == 0:
            become(json.loads(line))
