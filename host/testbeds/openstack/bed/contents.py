"""The initial contents of a testbed: schemas, users, roles, endpoints, an image, flavors."""

import os
import secrets
from concurrent.futures import ThreadPoolExecutor

from .api import Api
from .configuration import python_env
from .processes import run
from .services import sql, start_wsgi
from .state import REGION

DATABASES = ['keystone', 'glance', 'placement', 'nova_api', 'nova',
             'nova_cell0']
# All that a drain needs from Nova: the access rules of the application
# credential `drain-limited`.
DRAIN_RULES = [
    ('GET', '/v2.1/'), ('GET', '/v2.1/os-services'),
    ('PUT', '/v2.1/os-services/*'), ('GET', '/v2.1/servers'),
    ('GET', '/v2.1/servers/detail'), ('GET', '/v2.1/servers/*'),
    ('POST', '/v2.1/servers/*/action'),
    ('GET', '/v2.1/servers/*/migrations'),
    ('GET', '/v2.1/servers/*/migrations/*'),
    ('DELETE', '/v2.1/servers/*/migrations/*'),
    ('POST', '/v2.1/servers/*/migrations/*/action'),
    ('GET', '/v2.1/servers/*/os-instance-actions'),
    ('GET', '/v2.1/servers/*/os-instance-actions/*'),
    ('GET', '/v2.1/os-migrations')]
FLAVORS = {'small': (1, 256, 0), 'medium': (4, 4096, 0),
           'large': (40, 81920, 0)}


def setup_databases(bed):
    for name in DATABASES + ['nova_cell2'] * bed.has_cell2:
        sql(bed, 'create database if not exists %s character set utf8' % name)
    env = python_env(bed)
    nova = [bed.tool('nova-manage'), '--config-file',
            bed.path('etc', 'nova.conf'), '--config-file',
            bed.path('etc', 'nova-db.conf')]
    keystone = [bed.tool('keystone-manage'), '--config-file',
                bed.path('etc', 'keystone.conf')]
    who = []
    if os.getuid() == 0:
        who = ['--keystone-user', 'root', '--keystone-group', 'root']

    def do_nova():
        run(bed, nova + ['api_db', 'sync'], env, log='setup-nova')
        run(bed, nova + ['cell_v2', 'map_cell0', '--database_connection',
                         bed.db('nova_cell0')], env, log='setup-nova')
        run(bed, nova + ['db', 'sync'], env, log='setup-nova')
        # 2: an interrupted `up` has already created the cell.
        run(bed, nova + ['cell_v2', 'create_cell', '--name', 'cell1'], env,
            log='setup-nova', ok=(0, 2))
        if bed.has_cell2:
            files = ['--config-file', bed.path('etc', 'nova-cell2.conf'),
                     '--config-file', bed.path('etc', 'nova-cell2-db.conf')]
            run(bed, nova[:3] + files + ['db', 'sync', '--local_cell'], env,
                log='setup-nova')
            run(bed, nova + ['cell_v2', 'create_cell', '--name', 'cell2',
                             '--database_connection', bed.db('nova_cell2'),
                             '--transport-url', bed.rabbit_url('cell2')], env,
                log='setup-nova', ok=(0, 2))

    def do_keystone():
        log = 'setup-keystone'
        for kind in ('fernet', 'credential'):
            os.makedirs(bed.path('etc', kind), mode=0o700, exist_ok=True)
        run(bed, keystone + ['db_sync'], env, log=log)
        run(bed, keystone + ['fernet_setup'] + who, env, log=log)
        run(bed, keystone + ['credential_setup'] + who, env, log=log)
        url = bed.url('keystone', '/v3')
        run(bed, keystone + [
            'bootstrap', '--bootstrap-password', bed.settings['password'],
            '--bootstrap-region-id', REGION, '--bootstrap-admin-url', url,
            '--bootstrap-public-url', url, '--bootstrap-internal-url', url],
            env, log=log)
        start_wsgi(bed, 'keystone', 'keystone.wsgi.api')
        run(bed, [bed.tool('placement-manage'), '--config-dir',
                  bed.path('etc', 'placement.d'), '--config-file',
                  bed.path('etc', 'placement.conf'), 'db', 'sync'], env,
            log='setup-placement')
        run(bed, [bed.tool('glance-manage'), '--config-file',
                  bed.path('etc', 'glance-api.conf'), 'db_sync'], env,
            log='setup-glance')

    os.makedirs(bed.path('etc', 'placement.d'), exist_ok=True)
    with ThreadPoolExecutor(2) as pool:
        for job in [pool.submit(do_nova), pool.submit(do_keystone)]:
            job.result()


def setup_identity(bed):
    api = Api(bed)
    ks = lambda m, p, b=None, ok=(): api.call(m, 'keystone', '/v3' + p, b,
                                              ok=ok)

    def named(kind, name, **more):
        plural = kind + 's'
        for item in ks('GET', '/%s?name=%s' % (plural, name))[plural]:
            return item['id']
        return ks('POST', '/' + plural,
                  {kind: dict(more, name=name)})[kind]['id']

    roles = {r: named('role', r) for r in ('admin', 'member', 'service')}
    projects = {p: named('project', p, domain_id='default') for p in
                ('admin', 'service', 'tenant-1', 'tenant-2', 'operations')}
    users = {'admin': named('user', 'admin')}
    for user in ('nova', 'placement', 'glance', 'drainer', 'alice'):
        users[user] = named('user', user, domain_id='default',
                            password=bed.settings['password'])
    grants = [('admin', 'tenant-1', 'admin'), ('admin', 'tenant-2', 'admin'),
              ('drainer', 'operations', 'admin'),
              ('alice', 'tenant-1', 'member')]
    for user in ('nova', 'placement', 'glance'):
        grants += [(user, 'service', 'admin'), (user, 'service', 'service')]
    for user, project, role in grants:
        ks('PUT', '/projects/%s/users/%s/roles/%s' % (
            projects[project], users[user], roles[role]))

    # Two regions. All endpoints of the second are closed ports, so a client
    # that ignores the region fails.
    ks('POST', '/regions', {'region': {'id': 'RegionTwo'}}, ok=(409,))
    have = {(e['service_id'], e['interface'], e['region_id'])
            for e in ks('GET', '/endpoints')['endpoints']}
    for kind, name, where, tail in (
            ('compute', 'nova', 'nova', '/v2.1'),
            ('placement', 'placement', 'placement', ''),
            ('image', 'glance', 'glance', ''),
            ('identity', 'keystone', 'keystone', '/v3')):
        service = named('service', name, type=kind)
        for face in ('public', 'internal', 'admin'):
            if (service, face, REGION) not in have:
                ks('POST', '/endpoints', {'endpoint': {
                    'service_id': service, 'interface': face,
                    'region_id': REGION, 'url': bed.url(where, tail)}})
        if kind == 'compute' and (service, 'public', 'RegionTwo') not in have:
            ks('POST', '/endpoints', {'endpoint': {
                'service_id': service, 'interface': 'public',
                'region_id': 'RegionTwo', 'url': 'http://127.0.0.1:9/v2.1'}})

    if not bed.settings.get('app_credentials'):
        mine = Api(bed, project='operations', user='drainer')
        made = {}
        for name, rules in (('drain', None), ('drain-limited', DRAIN_RULES)):
            secret = secrets.token_urlsafe(24)
            body = {'name': name, 'secret': secret,
                    'roles': [{'name': 'admin'}]}
            if rules:
                body['access_rules'] = [
                    {'service': 'compute', 'method': method, 'path': path}
                    for method, path in rules]
            made[name] = {'secret': secret, 'id': mine.call(
                'POST', 'keystone', '/v3/users/%s/application_credentials'
                % users['drainer'], {'application_credential': body})
                ['application_credential']['id']}
        bed.settings['app_credentials'] = made
    bed.settings['projects'] = projects
    bed.settings['users'] = users
    bed.save()


def setup_compute(bed):
    api = Api(bed)
    found = api.call('GET', 'glance', '/v2/images?name=empty')['images']
    if found:
        image = found[0]['id']
    else:
        image = api.call('POST', 'glance', '/v2/images', {
            'name': 'empty', 'disk_format': 'raw',
            'container_format': 'bare', 'visibility': 'public'})['id']
        api.call('PUT', 'glance', '/v2/images/%s/file' % image,
                 raw=b'\0' * 1024)
    have = {f['name'] for f in api.nova('GET', '/flavors/detail')['flavors']}
    for name, (cpus, ram, disk) in FLAVORS.items():
        if name not in have:
            api.nova('POST', '/flavors', {'flavor': {
                'name': name, 'id': name, 'vcpus': cpus, 'ram': ram,
                'disk': disk}})
    bed.settings['image'] = image
    bed.save()
