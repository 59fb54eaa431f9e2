# The functions of adaptive.py, and methods of Adaptive, in machine code.
import micropython

from . import pairs_viper
from .numbers import divide
from .numbers_viper import exp2
from .pairs_viper import refuse
from .watch import AUDITS

teach_experts = pairs_viper.teach


@micropython.viper
def offload_wish(belief: ptr32, effective: ptr32, floor: int) -> int:
    p = belief[0]
    low = belief[1]
    high = belief[2]
    fp = effective[1]
    fn = effective[2]
    cost_0 = p * fn
    cost_1 = (32768 - p) * fp
    guess = 0
    gain = (high * fn >> 15) - ((32768 - high) * fp >> 15)
    if cost_1 <= cost_0:
        guess = 1
        gain = ((32768 - low) * fp >> 15) - (low * fn >> 15)
        cost_0 = cost_1
    if effective[3] < effective[4] and high > effective[3] and low < effective[4]:
        return 65536 | guess
    if gain > 0:
        p = effective[0] - (cost_0 >> 15)
        if p < 33:
            p = 33
        gain = (gain << 14) // p
        if gain > 4194304:
            gain = 4194304
        gain = gain * 200 // (200 + belief[3]) << 1
        if gain > 32768:
            gain = 32768
        if gain > floor:
            floor = gain
    return floor << 1 | guess


@micropython.viper
def logistic(lead: int, unit: int) -> int:
    x = lead
    if x < 0:
        x = 0 - x
    y = int(exp2(x, unit))
    y >>= 14
    x = y << 14
    if lead >= 0:
        x = 536870912
    return x // (32768 + y) << 1


@micropython.viper
def forecast(self, k, total: int) -> int:
    floor = int(self.floor)
    x = int(AUDITS[self.forecaster.audits])
    if x > floor:
        floor = x
    x = int(offload_wish(self.estimate(k), self.effective, floor))
    self.guess = x & 1
    x >>= 1
    self.wish = x
    self.certain = x == floor
    unit = int(self.experts.unit)
    return int(logistic((int(self.start) + int(self.lead) >> 6 + unit) - total, unit))


@micropython.viper
def decide(self, k: int) -> int:
    experts = self.experts
    if k < 0 or k >= int(experts.n):
        refuse(k, experts)
    forecaster = self.forecaster
    forecaster.count_score(k)
    if int(forecaster.age) % 1000 == 0:
        self.forget()
    if int(experts.bound) > 167772160:
        experts.coarsen()
    share = int(self._forecast(k, experts.regions(k)))
    pairs = 32768 - share
    wish = int(self.wish)
    guess = int(self.guess)
    positive = pairs * (int(experts.positive) >> 1)
    negative = pairs * (int(experts.negative) >> 1)
    x = share * (32768 - wish >> 1)
    if guess:
        positive += x
    else:
        negative += x
    positive >>= 14
    negative >>= 14
    self.positive = positive
    self.negative = negative
    chance = share * (wish >> 1) + pairs * (int(experts.offload) >> 1) >> 14
    x = int(self.floor)
    if chance < x:
        chance = x
    self.chance = chance
    local = guess
    if share < pairs:
        local = int(experts.local)
    self.local = local
    psi = int(self.rng.draw())
    charge = int(self.charge)
    ticket = 0
    action = guess
    if psi < chance:
        action = -1
        x = chance + 655 << 14
        if x > 536870912:
            x = 536870912
        tickets = self.tickets
        ticket = int(tickets.open(k, charge, local, x))
        wishes = ptr32(self.wishes)
        at = ticket % int(tickets.window)
        wishes[at] = wish << 1 | guess
        if self.certain:
            forecaster.count_audit()
    elif positive + negative:
        action = 0
        if (psi - chance) * (positive + negative) < positive * (32768 - chance):
            action = 1
    self.ticket = ticket
    experts.charge(k, self.offload_loss)
    x = int(self.rate) >> 6
    at = (charge >> 1) * wish >> 14
    self._move(0 - scaled(x, at))
    return action


@micropython.viper
def teach(self, slot: int, label: int):
    teach_experts(self, slot, label)
    wishes = ptr32(self.wishes)
    at = slot // 5
    x = wishes[at]
    rates = self.rates
    own = int(rates[label << 1 | x & 1])
    x = 32768 - (x >> 1)
    sign = own
    if own < 0:
        own = 0 - own
    own = scaled(own, x)
    if sign < 0:
        own = 0 - own
    slots = ptr32(self.tickets.slots)
    at = slot
    loss = self.label_loss
    divide(int(rates[label << 1 | 1]) - own, slots[at + 4], loss, 0)
    losses = ptr32(loss)
    x = losses[0]
    x = clamp(x, -4194304, 4194304)
    self._move((x << 6) + (losses[1] >> 8))
    self.forecaster.learn(slots[at + 1], label)


@micropython.viper
def move(self, octaves: int):
    octaves += int(self.lead)
    octaves = clamp(octaves, -536870911, 536870911)
    self.lead = octaves
