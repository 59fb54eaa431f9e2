# A method of pairs.Pairs in machine code, and an error that machine code raises.
import micropython

from .numbers import divide


def refuse(k, experts):
    raise ValueError("bin %r is not in 0..%d" % (k, experts.n - 1))


@micropython.viper
def teach(self, slot: int, label: int):
    slots = ptr32(self.tickets.slots)
    at = slot
    chance = slots[at + 4]
    if chance:
        loss = self.label_loss
        rates = self.rates
        divide(rates[label << 1], chance, loss, 0)
        divide(0 - int(rates[label << 1 | 1]), chance, loss, 2)
        self.experts.charge(slots[at + 1], loss)
