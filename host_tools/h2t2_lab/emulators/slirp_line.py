"""Starts the lwip port on a network of its own: `python slirp_line.py SLIRP PRELOAD MICROPYTHON ARGUMENT...`.

slirp connects the port's SLIP line to this machine's sockets: its 10.0.2.2 is our 127.0.0.1. This process becomes MicroPython;
slirp is its child and ends with it. SIGSTOP to slirp stalls the network. PRELOAD is the compiled slirp_preload/nodelay.c.
H2T2_WEB: a port of this machine, on which slirp lets clients in to the port's web page, 10.0.2.15:80; empty: nobody comes in.
"""

import ctypes
import os
import signal
import socket
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    slirp, preload, *program = sys.argv[1:]
    ours, theirs = socket.socketpair()
    parent = os.getpid()
    if os.fork() == 0:
        os.setsid()  # Ctrl-C must reach MicroPython only
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        silence = os.open(os.devnull, os.O_WRONLY)
        for number, target in ((theirs.fileno(), 0), (theirs.fileno(), 1), (silence, 2)):
            os.dup2(number, target)
        ours.close()
        web = os.environ.get("H2T2_WEB")
        door = [f"redir tcp {web} to 10.0.2.15:80"] if web else []
        os.execve(slirp, [slirp, *door], {"HOME": "/nonexistent", "PATH": "/usr/bin:/bin", "LD_PRELOAD": preload})
    theirs.close()
    ours.setblocking(False)
    ours.set_inheritable(True)
    os.environ.update(H2T2_SLIP=str(ours.fileno()))
    os.execv(program[0], program)


if __name__ == "__main__":
    main()
