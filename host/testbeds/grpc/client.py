"""Calls a gRPC method on a Unix socket CALLS times over one connection, with a
client on gRPC's C core: client.py SOCKET METHOD REQUEST CALLS.

Messages are hexadecimal digits, one answer a line. Each call has other metadata,
so that the client's table of recent headers overflows.
"""

import sys

import grpc

PATIENCE = 60.0  # seconds


def metadata(number):
    """Short and long values, text and bytes, repeated and new."""
    return [('x-same', 'always'), ('x-number', str(number)),
            ('x-long', '%d-' % number + 'x' * (number * 97 % 3000)),
            ('x-bytes-bin', bytes(range(number % 256)))]


def main():
    socket, method, request, calls = sys.argv[1:]
    with grpc.insecure_channel('unix:' + socket) as channel:
        call = channel.unary_unary(method)
        for number in range(int(calls)):
            answer = call(bytes.fromhex(request), timeout=PATIENCE,
                          metadata=metadata(number))
            print(answer.hex())


if __name__ == '__main__':
    try:
        main()
    except grpc.RpcError as error:
        sys.exit('%s: %s' % (error.code(), error.details()))
