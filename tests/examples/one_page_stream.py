# Rounds of H2T2 on one page, one line every 100 of them; FEEDBACK, ROUNDS and what the page defines stand before it.
# ruff: noqa: F821
policy = H2T2(beta=9830, delta_fp=22938, delta_fn=32768, eta=1024, epsilon=2048, seed=7, feedback=FEEDBACK)
source = H2T2(beta=0, delta_fp=0, delta_fn=0, eta=1024, epsilon=256, seed=99, feedback="all")  # its draws make the stream
crc = 0
for n in range(ROUNDS):
    label = int(source.draw() < 13000)
    k = min((source.draw() + source.draw() + (20000 if label else 6000)) // 6144, 15)
    action = policy.decide(k)
    if action == OFFLOAD:
        policy.learn(policy.ticket, label)
    crc = (crc * 31 + k * 4 + action + 1) % 32749
    if n % 100 == 99:
        print(n + 1, crc, policy.masses, list(policy.snapshot()))
    if n % 1000 == 500:  # a restart
        state = policy.snapshot()
        policy = H2T2(beta=9830, delta_fp=22938, delta_fn=32768, eta=1024, epsilon=2048, seed=8, feedback=FEEDBACK)
        policy.restore(state)
