"""Starts the services, in order."""

import glob
import json
import os
import socket
import subprocess

from .configuration import nova_files, python_env, rabbit_env
from .processes import alive, listening, run, spawn, wait_for, write_record
from .state import LIB, Failure


def start_database(bed):
    data = bed.path('db')
    share = bed.sysroot('usr/share/mysql')
    common = ['--no-defaults', '--lc-messages-dir=' + share,
              '--character-sets-dir=' + share + '/charsets',
              '--datadir=' + data, '--skip-networking', '--skip-log-bin',
              '--socket=' + bed.path('db.sock'),
              '--pid-file=' + bed.path('db.pid'), '--skip-grant-tables',
              '--innodb-flush-log-at-trx-commit=0', '--innodb-doublewrite=0',
              '--innodb-buffer-pool-size=256M', '--max-connections=500',
              '--plugin-dir=' + bed.sysroot('usr/lib/mysql/plugin'),
              '--performance-schema=OFF', '--tmpdir=' + bed.path('tmp')]
    if os.getuid() == 0:
        common.append('--user=root')
    server = bed.sysroot('usr/sbin/mariadbd')
    if not os.path.isdir(os.path.join(data, 'mysql')):
        os.makedirs(data, exist_ok=True)
        script = bed.path('tmp', 'bootstrap.sql')
        with open(script, 'w') as out:
            out.write('create database mysql;\nuse mysql;\n')
            for part in ('system_tables', 'performance_tables',
                         'system_tables_data'):
                with open(os.path.join(share, 'mysql_%s.sql' % part)) as f:
                    out.write(f.read())
        with open(script) as f:
            run(bed, [server] + common + ['--bootstrap'], stdin=f, env={
                'LD_LIBRARY_PATH': ':'.join(
                    glob.glob(bed.sysroot('usr/lib/*-linux-gnu*')))})
    env = {'LD_LIBRARY_PATH': ':'.join(
        glob.glob(bed.sysroot('usr/lib/*-linux-gnu*')))}
    if spawn(bed, 'database', [server] + common, env=env):
        def ready():
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(bed.path('db.sock'))
                return bool(s.recv(1))
        wait_for('the database', ready, 60, bed, 'database')


def sql(bed, text):
    script = ('import pymysql,sys\n'
              'c=pymysql.connect(unix_socket=sys.argv[1],user="root",'
              'autocommit=True).cursor()\n'
              'for q in sys.argv[2].split(";"):\n'
              '    if q.strip(): c.execute(q)\n')
    run(bed, [bed.tool('python'), '-c', script, bed.path('db.sock'), text])


def start_rabbit(bed):
    os.makedirs(bed.path('rabbit'), exist_ok=True)
    env = rabbit_env(bed)
    epmd = glob.glob(bed.sysroot('usr/lib/erlang/erts-*/bin/epmd'))[0]
    if spawn(bed, 'epmd', [epmd, '-address', '127.0.0.1', '-port',
                           str(bed.port('epmd'))], env=env):
        wait_for('epmd', lambda: listening(bed.port('epmd')), 20, bed, 'epmd')
    script = glob.glob(bed.sysroot(
        'usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server'))[0]
    spawn(bed, 'rabbit', [script], env=env)


def start_wsgi(bed, name, module):
    spawn(bed, name, [bed.tool('python'), os.path.join(LIB, 'wsgi_run.py'),
                      module, str(bed.port(name))], env=python_env(bed))


class Nova:
    """Nova's services, as forks of one process that ends when all are started."""

    def __init__(self, bed):
        self.bed, self.parent = bed, None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.parent:
            self.parent.stdin.close()
            self.parent.wait()

    def start(self, name):
        bed = self.bed
        if alive(bed, name):
            return False
        main, files = nova_files(bed, name)
        argv = ['nova-' + main if main != 'api_os_compute' else name]
        for file in ['nova.conf'] + files:
            argv += ['--config-file', bed.path('etc', file)]
        log = bed.path('log', name + '.log')
        if not self.parent:
            with open(log, 'ab') as out:
                self.parent = subprocess.Popen(
                    [bed.tool('python'), os.path.join(LIB, 'nova_services.py')],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=out,
                    env=dict(os.environ, **python_env(bed)), cwd=bed.dir)
        order = {'argv': argv, 'log': log, 'main': 'nova.cmd.' + main}
        try:
            self.parent.stdin.write(json.dumps(order).encode() + b'\n')
            self.parent.stdin.flush()
        except BrokenPipeError:
            raise Failure('importing Nova failed, see log/%s.log' % name) from None
        answer = self.parent.stdout.readline()
        if not answer:
            raise Failure('%s did not start, see log/%s.log' % (name, name))
        write_record(bed, name, int(answer))
        return True


def start_all_nova(bed):
    """Starts the compute services last: a service that calls the conductor too
    early waits ten seconds before it retries."""
    logs = [bed.path('log', name + '.log') for name in bed.conductors]
    seen = {log: os.path.getsize(log) for log in logs if os.path.exists(log)}

    def ready(log):
        with open(log, 'rb') as f:
            f.seek(seen.get(log, 0))
            return b'Starting conductor node' in f.read()
    with Nova(bed) as nova:
        fresh = [nova.start(name) for name in
                 bed.conductors + ['nova-api', 'nova-scheduler']]
        if any(fresh):
            wait_for('nova-conductor', lambda: all(map(ready, logs)), 120, bed,
                     'nova-conductor')
            wait_for('rabbit', lambda: listening(bed.port('rabbit')), 60, bed,
                     'rabbit')
        for name in bed.computes:
            nova.start(name)


def start_compute(bed, name):
    with Nova(bed) as nova:
        nova.start(name)


def order(bed):
    return ['database', 'epmd', 'rabbit', 'network', 'keystone', 'placement',
            'glance', *bed.conductors, 'nova-scheduler', 'nova-api',
            *bed.computes]
