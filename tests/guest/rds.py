# SPDX-License-Identifier: Apache-2.0
"""
rds.py server ADDRESS MESSAGES | client OWN SERVER MESSAGES, for rds.sh: the client sends messages of many lengths, the
server sends them back, the client compares.
"""
import random
import socket
import sys

PORT = 18700
LENGTHS = (1, 64, 1000, 4096, 4097, 20000, 65536)

role, address, count = sys.argv[1], sys.argv[2], int(sys.argv[-1])
s = socket.socket(socket.AF_RDS, socket.SOCK_SEQPACKET, 0)
s.bind((address, PORT))
if role == "server":
    print("listening", flush=True)
    for _ in range(count):
        data, sender = s.recvfrom(1 << 20)
        s.sendto(data, sender)
    # The last answer has to be acknowledged before the socket goes.
    s.recvfrom(1 << 20)
else:
    r = random.Random(9)
    s.settimeout(20 if count == 1 else 200)
    for _ in range(count):
        data = r.randbytes(r.choice(LENGTHS))
        s.sendto(data, (sys.argv[3], PORT))
        if s.recvfrom(1 << 20)[0] != data:
            sys.exit(f"another message of {len(data)} bytes came back")
    s.sendto(b"end", (sys.argv[3], PORT))
