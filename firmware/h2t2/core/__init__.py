# The policy core: integers only. Imports array and its own modules, nothing else.
