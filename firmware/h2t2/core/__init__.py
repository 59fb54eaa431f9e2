# The policy core: integers only. It imports array and its own modules, nothing else. A step (decide, learn, lose) allocates
# nothing on the heap, and every intermediate result fits a 31-bit small int.
