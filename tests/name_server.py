"""A DNS server for tests, which can be silent."""

import socket
import threading


class NameServer:
    """Answers every question for an IPv4 address with `address`, on 127.0.0.1.

    Attributes:
        port: Its port.
        silent: It leaves questions unanswered.
        unknown: It answers that the name does not exist.
        questions: Number of questions, answered or not.
    """

    def __init__(self, address):
        self.address = address
        self.silent = self.unknown = False
        self.questions = 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
            own.sendto(b"", ("127.0.0.1", self.port))  # ends the thread
        self.thread.join()
        self.socket.close()

    def _serve(self):
        while True:
            query, client = self.socket.recvfrom(512)
            if not query:
                return
            self.questions += 1
            if not self.silent:
                self.socket.sendto(self.answer(query), client)

    def answer(self, query):
        """Return the answer to a query: an alias, then the address."""
        if self.unknown:
            return query[:2] + b"\x81\x83" + query[4:]
        alias = b"\xc0\x0c\x00\x05\x00\x01" + bytes(4) + b"\x00\x07\x04real\xc0\x0c"
        address = b"\xc0\x0c\x00\x01\x00\x01" + bytes(4) + b"\x00\x04" + socket.inet_aton(self.address)
        return query[:2] + b"\x81\x80\x00\x01\x00\x02\x00\x00\x00\x00" + query[12:] + alias + address
