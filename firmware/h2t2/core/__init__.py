# The policy core: integers only. It imports array and its own modules, nothing else.
#
# A micro:bit gets numbers, rng, tickets, experts, policy and h2t2 cut down to what its 9 KB of heap hold (`h2t2 flash`), and
# the kernels of ldl likewise. That build makes one object of policy, experts, tickets and generator, leaves out whatever only
# checks, and puts fixed options in place. So in these files, which tests/boards/test_microbit_rules.py holds to it:
#
# 1. No attribute or used method of policy, Experts, Tickets and Rng has the name of another of them, but `lose` and `local`.
# 2. What only refuses bad arguments is an `if` whose body raises, or a function whose name begins with checked_: both go.
# 3. Tables and constants are module-level names in capitals; an integer constant is put where it is used.
# 4. No function has more arguments and locals than there are ROM words for them (shrink.LOCALS).
# 5. No two values are assigned at once, no default of an argument is relied on inside, nothing is imported in a function.
