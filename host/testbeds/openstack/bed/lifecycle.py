"""The commands that start and end a testbed."""

import json
import os
import random
import secrets
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from .api import Api, answers, computes_up, hosts_mapped, scheduler_up
from .configuration import configure
from .contents import setup_compute, setup_databases, setup_identity
from .processes import alive, listening, record, spawn, start_time, stop, wait_for
from .services import (order, start_all_nova, start_compute, start_database,
                       start_rabbit, start_wsgi)
from .software import install
from .state import (HERE, LIB, PORTS, REGION, SOFTWARE, Bed, Failure,
                    say)


def cmd_up(bed, args):
    begun = time.monotonic()
    marks = []

    def mark(what):
        marks.append((what, time.monotonic()))
        say('%6.1f s  %s' % (time.monotonic() - begun, what))

    os.makedirs(bed.dir, mode=0o700, exist_ok=True)
    for name in ('run', 'log', 'etc', 'tmp', 'nova', 'glance/images',
                 'glance/stage', 'glance/tasks'):
        os.makedirs(bed.path(name), exist_ok=True)
    if args.owner:
        guard(bed, args.owner)
    defaults = {'token_ttl': 3600, 'max_live': 1, 'cells': 1,
                'migrate_seconds': 1.0,
                'software': SOFTWARE}
    for key, value in defaults.items():
        given = getattr(args, key, None)
        if given is not None:
            bed.settings[key] = (os.path.abspath(given) if key == 'software'
                                 else given)
        bed.settings.setdefault(key, value)
    bed.settings.setdefault('password', secrets.token_hex(12))
    choose_ports(bed, args)
    bed.save()
    if install(bed):
        mark('software installed')
    configure(bed)
    start_database(bed)
    mark('database')
    start_rabbit(bed)
    spawn(bed, 'network', [bed.tool('python'),
                           os.path.join(LIB, 'network_stub.py'),
                           str(bed.port('network'))])
    if not bed.settings.get('databases'):
        setup_databases(bed)
        bed.settings['databases'] = True
        bed.save()
        mark('database schemas')
    start_wsgi(bed, 'keystone', 'keystone.wsgi.api')
    start_wsgi(bed, 'placement', 'placement.wsgi.api')
    start_wsgi(bed, 'glance', 'glance.wsgi.api')
    if bed.settings.get('identity'):
        start_all_nova(bed)
    wait_for('keystone', lambda: answers(bed.url('keystone', '/v3')), 90,
             bed, 'keystone')
    mark('keystone')
    if not bed.settings.get('identity'):
        setup_identity(bed)
        bed.settings['identity'] = True
        bed.save()
        mark('users, roles, endpoints')
        start_all_nova(bed)
    for name in ('placement', 'glance'):
        wait_for(name, lambda: answers(bed.url(name, '/')), 90, bed, name)
    wait_for('nova-api', lambda: answers(bed.url('nova', '/')), 120, bed,
             'nova-api')
    mark('placement, glance, nova-api')
    if not bed.settings.get('compute'):
        setup_compute(bed)
        bed.settings['compute'] = True
        bed.save()
    api = Api(bed)
    # Polling takes CPU time that the starting services need.
    wait_for('nova-compute', lambda: computes_up(api, bed.computes), 180, bed,
             every=1)
    wait_for('the host mapping', lambda: hosts_mapped(api, bed.computes), 60, bed,
             every=1)
    wait_for('nova-scheduler', lambda: scheduler_up(api), 60, bed, every=1)
    mark('the nova-compute services are up')
    write_clouds(bed)
    say('ready; credentials are in %s' % bed.path('clouds.yaml'))


def choose_ports(bed, args):
    """The service catalog contains the ports, so they are stored with the state."""
    if any(alive(bed, n) for n in order(bed)):
        return
    if args.port_base is not None:
        bed.settings['port_base'] = args.port_base
    if 'port_base' not in bed.settings:
        # Below the range of ports for outgoing connections.
        bases = list(range(20000, 32000, len(PORTS)))
        random.shuffle(bases)
        bed.settings['port_base'] = next(
            base for base in bases
            if not any(listening(base + i) for i in range(len(PORTS))))
    for name in PORTS:
        if listening(bed.port(name)):
            raise Failure('port %d is taken; `wipe` this state for others'
                          % bed.port(name))


def guard(bed, owner):
    """Ends the testbed when its owner has ended, for any reason."""
    start = start_time(owner)
    if start is None:
        raise Failure('no process has pid %d' % owner)
    stop(bed, 'guard')
    spawn(bed, 'guard', [sys.executable, os.path.join(HERE, 'openstack-testbed'),
                         'guard', bed.dir, str(owner), start])


def cmd_guard(bed, args):
    while start_time(args.owner) == args.start:
        time.sleep(0.5)
    cmd_down(bed, args)


def cmd_fetch(bed, args):
    """Fetches the software, so that `up` needs no network."""
    bed.settings['software'] = os.path.abspath(args.software or SOFTWARE)
    bed.dir = bed.settings['software']
    os.makedirs(bed.path('log'), exist_ok=True)
    install(bed)


def write_clouds(bed):
    """A clouds.yaml (as JSON, which is YAML) for any OpenStack client."""
    def cloud(auth, **more):
        return dict({'region_name': REGION, 'interface': 'public',
                     'auth': dict(auth, auth_url=bed.url('keystone', '/v3'))},
                    **more)

    clouds = {}
    for user, project in (('admin', 'admin'), ('drainer', 'operations'),
                          ('alice', 'tenant-1')):
        clouds['testbed-' + user] = cloud({
            'username': user, 'password': bed.settings['password'],
            'project_name': project, 'user_domain_id': 'default',
            'project_domain_id': 'default'})
    for name, cred in bed.settings['app_credentials'].items():
        clouds['testbed-' + name] = cloud(
            {'application_credential_id': cred['id'],
             'application_credential_secret': cred['secret']},
            auth_type='v3applicationcredential')
    with open(os.open(bed.path('clouds.yaml'),
                      os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
              'w') as f:
        json.dump({'clouds': clouds}, f, indent=2)
        f.write('\n')


def cmd_down(bed, args):
    begun = time.monotonic()
    # In this order: a compute service signs off through the conductor.
    for group in (bed.computes + ['nova-scheduler', 'nova-api'],
                  bed.conductors + ['glance', 'placement', 'network',
                   'keystone'],
                  ['database', 'rabbit'], ['epmd']):
        with ThreadPoolExecutor(len(group)) as pool:
            list(pool.map(lambda n: stop(bed, n), group))
    # Last, because this process may be the guard.
    if (record(bed, 'guard') or {}).get('pid') == os.getpid():
        os.unlink(bed.path('run', 'guard.json'))
    else:
        stop(bed, 'guard')
    say('down in %.1f s' % (time.monotonic() - begun))


def cmd_status(bed, args):
    bed.need()
    good = True
    for name in order(bed):
        here = alive(bed, name)
        good = good and here
        rec = record(bed, name) or {}
        port = bed.port({'nova-api': 'nova'}.get(name, name)) if \
            {'nova-api': 'nova'}.get(name, name) in PORTS else ''
        print('%-15s %-8s pid %-8s %s' % (
            name, 'running' if here else 'stopped',
            rec.get('pid', '-') if here else '-',
            'port %s' % port if port else ''))
    if good:
        for s in Api(bed).nova('GET', '/os-services')['services']:
            print('%-15s %-12s %-9s %-5s %s' % (
                s['binary'], s['host'], s['status'], s['state'],
                s.get('disabled_reason') or ''))
    return 0 if good else 3


def cmd_env(bed, args):
    bed.need()
    s = bed.settings
    cred = s.get('app_credentials', {}).get('drain', {})
    lines = {
        'OS_CLIENT_CONFIG_FILE': bed.path('clouds.yaml'),
        'OS_AUTH_URL': bed.url('keystone', '/v3'),
        'OS_REGION_NAME': REGION, 'OS_INTERFACE': 'public',
        'OS_USERNAME': 'admin', 'OS_PASSWORD': s['password'],
        'OS_PROJECT_NAME': 'admin', 'OS_USER_DOMAIN_ID': 'default',
        'OS_PROJECT_DOMAIN_ID': 'default',
        'TESTBED_NOVA_URL': bed.url('nova', '/v2.1'),
        'TESTBED_APP_CREDENTIAL_ID': cred.get('id', ''),
        'TESTBED_APP_CREDENTIAL_SECRET': cred.get('secret', ''),
        'TESTBED_IMAGE': s.get('image', '')}
    for key, value in lines.items():
        print("export %s='%s'" % (key, value))


def cmd_token(bed, args):
    api = Api(bed, project=args.project, user=args.user)
    api.login()
    print(api.token)


def cmd_token_ttl(bed, args):
    """Restarts only Keystone; existing tokens stay valid."""
    bed.need()
    if bed.settings['token_ttl'] == args.seconds:
        return
    bed.settings['token_ttl'] = args.seconds
    bed.save()
    configure(bed)
    stop(bed, 'keystone')
    start_wsgi(bed, 'keystone', 'keystone.wsgi.api')
    wait_for('keystone', lambda: answers(bed.url('keystone', '/v3')), 90,
             bed, 'keystone')


def cmd_wipe(bed, args):
    if not os.path.isdir(bed.dir):
        return
    cmd_down(bed, args)
    keep = bed.settings.get('software', '')
    for entry in os.listdir(bed.dir):
        path = bed.path(entry)
        if os.path.abspath(path) == keep and not args.all:
            continue
        shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)


def cmd_stop_compute(bed, args):
    bed.need()
    stop(bed, args.host, 2 if args.hard else 15)


def cmd_start_compute(bed, args):
    bed.need()
    start_compute(bed, args.host)
    api = Api(bed)
    wait_for(args.host, lambda: computes_up(api, [args.host]), 120, bed,
             args.host, every=1)
