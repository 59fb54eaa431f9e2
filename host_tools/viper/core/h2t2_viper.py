# Methods of h2t2.H2T2 in machine code.
import micropython

from .pairs_viper import refuse


@micropython.viper
def decide(self, k: int) -> int:
    experts = self.experts
    if k < 0 or k >= int(experts.n):
        refuse(k, experts)
    if self.anytime or self.half_life:
        if self._count_round():
            self.forget()
    if int(experts.bound) > 167772160:
        experts.coarsen()
    experts.regions(k)
    local = int(experts.local)
    self.local = local
    rng = self.rng
    draw = int(rng.draw())
    epsilon = int(self.epsilon)
    explore = int(rng.draw()) < epsilon
    offload = int(experts.offload)
    action = -1
    ticket = 0
    if draw < offload or explore:
        chance = 0
        if self.learns_all:
            chance = int(experts.chance)
            x = 536870912 - chance
            chance += scaled(x, epsilon)
        elif explore:
            chance = epsilon << 14
        ticket = int(self.tickets.open(k, int(self.charge), local, chance))
    else:
        action = 0
        if draw < offload + int(experts.positive):
            action = 1
    self.ticket = ticket
    experts.charge(k, self.offload_loss)
    return action


@micropython.viper
def count_round(self) -> bool:
    half_life = int(self.half_life)
    t = int(self.t)
    if self.anytime and t < 16777215:
        if half_life == 0 or t < half_life << 1:
            t += 1
            self.t = t
            t <<= 6
            root = int(self.root) + 1
            if root * root * root <= t:
                while root * root * root <= t:
                    root += 1
                self.root = root - 1
            x = 65536 // (root - 1)
            if x > 16384:
                x = 16384
            self.epsilon = x
    if half_life:
        t = int(self.age) + 1
        if t > half_life:
            self.age = 1
            return True
        self.age = t
    return False
