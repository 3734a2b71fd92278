"""Starts Nova's services: one process imports Nova, and each service is a fork of it.

A Nova service spends half of its start on importing modules, which are the same
for all. Each line of input is a JSON object: `argv`, the arguments that the
service sees; `log`; and `main`, the module to run. The service's fork gets its
own session and answers with its process id.
"""

import importlib
import json
import os
import sys

import nova.cmd.compute   # must be first: it patches other modules
import eventlet.hubs
import nova.virt

# Nova loads virt drivers from its own `nova.virt` package only.
nova.virt.__path__.append(os.path.dirname(os.path.abspath(__file__)))

# What all services import later, but no more of Nova: on import, its managers
# read the intervals of their periodic tasks from the configuration, which only
# the forks load.
SHARED = [
    'glanceclient.v2.client', 'keystonemiddleware.auth_token',
    'nova.cmd.api_os_compute', 'nova.cmd.conductor', 'nova.cmd.scheduler',
    'oslo_messaging._drivers.impl_rabbit', 'pymysql',
    'sqlalchemy.dialects.mysql.pymysql']


def become(service):
    os.setsid()
    # A shared epoll descriptor would wake all forks for each event.
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
