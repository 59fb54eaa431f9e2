// Picolibc asks what the processor has.
