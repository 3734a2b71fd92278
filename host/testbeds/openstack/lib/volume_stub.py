"""What Nova asks of Cinder for a server that boots from a volume.

Each volume exists, is empty and can be attached anywhere; attachments are kept in memory.
"""

import uuid

VERSIONS = {'versions': [{'id': 'v3.0', 'status': 'CURRENT', 'version': '3.70',
                          'min_version': '3.0', 'links': []}]}
ATTACHMENTS = {}


def answer(method, path, body):
    """The status and the body of the answer. `path`: what follows the project."""
    if not path:
        return 200, VERSIONS
    if path[0] == 'volumes' and method == 'GET' and len(path) == 2:
        return 200, {'volume': volume(path[1])}
    if path[0] == 'attachments':
        return attachment(method, path[1:], body.get('attachment') or {})
    return 404, {'itemNotFound': {'code': 404, 'message': 'nothing here'}}


def volume(name):
    return {'id': name, 'name': name, 'description': '', 'status': 'available', 'size': 1,
            'availability_zone': 'nova', 'created_at': '2026-01-01T00:00:00.000000',
            'attachments': [], 'volume_type': None, 'snapshot_id': None, 'bootable': 'true',
            'multiattach': False, 'metadata': {}, 'volume_image_metadata': {}}


def attachment(method, path, body):
    if method == 'POST' and not path:
        kept = {'id': str(uuid.uuid4()), 'status': 'reserved', 'attach_mode': 'rw',
                'instance': body.get('instance_uuid'), 'volume_id': body.get('volume_uuid'),
                'attached_at': '', 'detached_at': '', 'connection_info': {}}
        ATTACHMENTS[kept['id']] = kept
    else:
        kept = ATTACHMENTS.get(path[0] if path else '')
    if kept is None:
        return 404, {'itemNotFound': {'code': 404, 'message': 'no such attachment'}}
    if method == 'DELETE':
        ATTACHMENTS.pop(kept['id'])
        return 200, {'attachments': []}
    if method == 'POST' and path[1:] == ['action']:
        return 204, None
    if body.get('connector'):
        kept['connection_info'] = {'driver_volume_type': 'testbed', 'encrypted': False}
    return 200, {'attachment': kept}
