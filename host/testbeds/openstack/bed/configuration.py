"""Configuration files and environments of all services."""

import glob
import json
import os
import uuid

from .state import CELL2_COMPUTES, REGION


def write(bed, name, sections):
    path = bed.path('etc', name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w') as f:
        for section, options in sections.items():
            f.write('[%s]\n' % section)
            for key, value in options.items():
                f.write('%s = %s\n' % (key, value))
            f.write('\n')


def auth(bed, user):
    return {'auth_type': 'password', 'auth_url': bed.url('keystone', '/v3'),
            'username': user, 'password': bed.settings['password'],
            'project_name': 'service', 'user_domain_name': 'Default',
            'project_domain_name': 'Default', 'region_name': REGION}


def configure(bed):
    s = bed.settings
    token = dict(auth(bed, 'nova'), www_authenticate_uri=bed.url('keystone'),
                 token_cache_time=1, interface='internal')
    pool = {'max_pool_size': 5, 'max_overflow': 30}
    tmp = bed.path('tmp')

    write(bed, 'keystone.conf', {
        'DEFAULT': {'use_stderr': 'true'},
        'database': dict(pool, connection=bed.db('keystone')),
        'token': {'provider': 'fernet', 'expiration': s['token_ttl'],
                  'allow_expired_window': 0},
        'fernet_tokens': {'key_repository': bed.path('etc', 'fernet')},
        'fernet_receipts': {'key_repository': bed.path('etc', 'fernet')},
        'credential': {'key_repository': bed.path('etc', 'credential')},
        # Without a cache, each token check makes hundreds of database queries.
        'cache': {'enabled': 'true', 'backend': 'dogpile.cache.memory'},
        # The cheapest hash: with the default, each login takes a quarter of a second.
        'identity': {'password_hash_rounds': 4},
        'oslo_policy': {'enforce_scope': 'true'}})
    write(bed, 'placement.conf', {
        'DEFAULT': {'use_stderr': 'true'},
        'api': {'auth_strategy': 'keystone'},
        'placement_database': dict(pool, connection=bed.db('placement')),
        'keystone_authtoken': dict(token, username='placement',
                                   token_cache_time=300)})
    write(bed, 'glance-api.conf', {
        'DEFAULT': {'use_stderr': 'true', 'enabled_backends': 'local:file',
                    'bind_host': '127.0.0.1', 'enabled_import_methods': '[]',
                    'worker_self_reference_url': bed.url('glance'),
                    'node_staging_uri': 'file://' + bed.path('glance/stage')},
        'database': dict(pool, connection=bed.db('glance')),
        'glance_store': {'default_backend': 'local'},
        'local': {'filesystem_store_datadir': bed.path('glance/images')},
        'os_glance_staging_store':
            {'filesystem_store_datadir': bed.path('glance/stage')},
        'os_glance_tasks_store':
            {'filesystem_store_datadir': bed.path('glance/tasks')},
        'keystone_authtoken': dict(token, username='glance',
                                   token_cache_time=300),
        'paste_deploy': {'flavor': 'keystone'}})
    with open(bed.path('etc', 'glance-api-paste.ini'), 'w') as f:
        src = glob.glob(os.path.join(bed.software, 'venv', 'etc', 'glance',
                                     'glance-api-paste.ini'))
        with open(src[0]) as g:
            f.write(g.read())

    write(bed, 'nova.conf', {
        'DEFAULT': {
            'use_stderr': 'true', 'my_ip': '127.0.0.1',
            'host': 'controller',
            'state_path': bed.path('nova'),
            'transport_url': bed.rabbit_url(),
            'enabled_apis': 'osapi_compute',
            'osapi_compute_listen': '127.0.0.1',
            'osapi_compute_listen_port': bed.port('nova'),
            'osapi_compute_workers': 1,
            'report_interval': 2, 'service_down_time': 8,
            'heal_instance_info_cache_interval': -1,
            'instance_build_timeout': 0,
            # A shelved server stays on its host until it is offloaded.
            'shelved_offload_time': -1,
            'max_concurrent_live_migrations': s['max_live'],
            'rpc_response_timeout': 60},
        # Without the service type, access rules of application credentials
        # have no effect.
        'keystone_authtoken': dict(token, service_type='compute'),
        'service_user': dict(auth(bed, 'nova'),
                             send_service_user_token='true'),
        'placement': auth(bed, 'nova'),
        'glance': dict(auth(bed, 'nova'), valid_interfaces='internal'),
        'neutron': dict(auth(bed, 'nova'), endpoint_override=bed.url('network'),
                        default_floating_pool='none'),
        'cinder': dict(auth(bed, 'nova'), endpoint_template=bed.url(
            'network', '/volume/v3/%(project_id)s')),
        'conductor': {'workers': 1},
        'scheduler': {'workers': 1, 'discover_hosts_in_cells_interval': 5},
        'quota': {'instances': -1, 'cores': -1, 'ram': -1,
                  'metadata_items': -1},
        'vnc': {'enabled': 'false'},
        'oslo_concurrency': {'lock_path': tmp},
        'oslo_messaging_notifications': {'driver': 'noop'},
        'wsgi': {'api_paste_config': os.path.join(
            bed.software, 'venv', 'etc', 'nova', 'api-paste.ini')},
        'compute': {'live_migration_wait_for_vif_plug': 'false'},
        'workarounds': {'handle_virt_lifecycle_events': 'false'}})
    # These must be hidden from nova-compute.
    write(bed, 'nova-db.conf', {
        'api_database': dict(pool, connection=bed.db('nova_api')),
        'database': dict(pool, connection=bed.db('nova'))})
    if bed.has_cell2:
        configure_cell2(bed, pool)
    for host in bed.computes:
        write(bed, host + '.conf', {
            'DEFAULT': {'host': host,
                        'compute_driver': 'testbed_driver.TestbedDriver',
                        'state_path': bed.path('nova', host)},
            'oslo_concurrency': {'lock_path': bed.path('nova', host, 'lock')}})
        os.makedirs(bed.path('nova', host, 'instances'), exist_ok=True)
        with open(bed.path('nova', host, 'compute_id'), 'w') as f:
            f.write(str(uuid.uuid5(uuid.NAMESPACE_DNS, 'testbed.' + host)))
    with open(bed.path('etc', 'rabbitmq.conf'), 'w') as f:
        f.write('listeners.tcp.local = 127.0.0.1:%d\n'
                'default_user = testbed\ndefault_pass = %s\n'
                'log.console = true\nlog.console.level = warning\n'
                'log.file = false\n' % (bed.port('rabbit'), s['password']))
        if bed.has_cell2:
            f.write('load_definitions = %s\n' % bed.path('etc', 'rabbitmq.json'))
    with open(bed.path('etc', 'rabbitmq-plugins'), 'w') as f:
        f.write('[].\n')


def configure_cell2(bed, pool):
    """A cell of its own for the last compute service."""
    write(bed, 'nova-cell2.conf', {
        'DEFAULT': {'transport_url': bed.rabbit_url('cell2')}})
    write(bed, 'nova-cell2-db.conf', {
        'api_database': dict(pool, connection=bed.db('nova_api')),
        'database': dict(pool, connection=bed.db('nova_cell2'))})
    with open(bed.path('etc', 'rabbitmq.json'), 'w') as f:
        json.dump({
            'users': [{'name': 'testbed', 'password': bed.settings['password'],
                       'tags': 'administrator'}],
            'vhosts': [{'name': vhost} for vhost in ('/', 'cell2')],
            'permissions': [{
                'user': 'testbed', 'vhost': vhost, 'configure': '.*',
                'write': '.*', 'read': '.*'} for vhost in ('/', 'cell2')]}, f)


def nova_files(bed, name):
    """The module of a service of Nova, and its configuration files after nova.conf."""
    cell = ['nova-cell2.conf'] if name in CELL2_COMPUTES + [
        'nova-conductor-2'] else []
    return {
        'nova-api': ('api_os_compute', ['nova-db.conf']),
        'nova-conductor': ('conductor', ['nova-db.conf']),
        'nova-conductor-2': ('conductor', cell + ['nova-cell2-db.conf']),
        'nova-scheduler': ('scheduler', ['nova-db.conf']),
    }.get(name, ('compute', cell + [name + '.conf']))


def python_env(bed):
    return {'PYTHONWARNINGS': 'ignore', 'LANG': 'C.UTF-8',
            'PYTHONDONTWRITEBYTECODE': '1',
            'OS_KEYSTONE_CONFIG_FILES': bed.path('etc', 'keystone.conf'),
            'OS_PLACEMENT_CONFIG_DIR': bed.path('etc'),
            'OS_GLANCE_CONFIG_DIR': bed.path('etc'),
            'TESTBED_MIGRATE_SECONDS': str(bed.settings['migrate_seconds']),
            'no_proxy': '127.0.0.1,localhost',
            'NO_PROXY': '127.0.0.1,localhost'}


def rabbit_env(bed):
    home = bed.path('rabbit')
    return {'HOME': home, 'LANG': 'C.UTF-8',
            'PATH': bed.sysroot('usr/lib/erlang/bin') + ':' +
            os.environ.get('PATH', '/usr/bin:/bin'),
            'ERL_ROOTDIR': bed.sysroot('usr/lib/erlang'),
            'ERL_EPMD_ADDRESS': '127.0.0.1',
            'ERL_EPMD_PORT': str(bed.port('epmd')),
            'RABBITMQ_CONF_ENV_FILE': '/dev/null',
            'RABBITMQ_CONFIG_FILE': bed.path('etc', 'rabbitmq.conf'),
            'RABBITMQ_ENABLED_PLUGINS_FILE': bed.path('etc',
                                                      'rabbitmq-plugins'),
            'RABBITMQ_MNESIA_BASE': os.path.join(home, 'mnesia'),
            'RABBITMQ_LOG_BASE': bed.path('log'),
            'RABBITMQ_PID_FILE': os.path.join(home, 'pid'),
            'RABBITMQ_NODENAME': 'testbed@localhost',
            'RABBITMQ_DIST_PORT': str(bed.port('rabbit-dist')),
            'RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS':
                '-kernel inet_dist_use_interface {127,0,0,1} '
                '-start_epmd false +sbwt none +S 2:2'}
