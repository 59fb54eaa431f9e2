# The local model (LDL): the integer interpreter and its bundle.
