# A UART as the line of a SerialLink, to a second board that runs uart_gateway.py.
import select


class Uart:
    """The line on a machine.UART. Its receive buffer holds what comes while the local model runs: rxbuf=1024."""

    def __init__(self, uart):
        self.uart = uart
        self.poller = select.poll()
        self.poller.register(uart, select.POLLIN)

    def read(self):
        return self.uart.read()

    def wait(self, ms):
        self.poller.poll(ms)

    def write(self, data):
        if self.uart.write(data) != len(data):
            raise OSError("the UART takes no more")

    def close(self):
        pass
