"""The host's end of line_socket.py: it opens the connections that a board on a serial line asks for."""

import socket
from binascii import a2b_base64, b2a_base64


def run(repl, source, seconds=240):
    """Run source on a board, as RawRepl.run() does, with connections. Return what it prints."""
    repl.start(source + "\nprint('the end')\n")
    printed, connection = [], None
    while True:
        line = repl.until(b"\r\n", seconds).decode()
        verb, _, content = line.removeprefix("socket ").partition(" ")
        if line == "the end":
            repl.until(b"\x04>", 10)
            return "\n".join(printed)
        if not line.startswith("socket "):
            printed.append(line)
            continue
        answer, sent = b"", a2b_base64(content)
        if verb == "connect":
            host, port = sent.decode().split()
            connection = socket.create_connection((host, int(port)), 60)
        elif verb == "send":
            connection.sendall(sent)
        elif verb == "receive":
            answer = connection.recv(int(sent), socket.MSG_WAITALL)
        else:
            connection.close()
        repl.line.write(b2a_base64(answer))
