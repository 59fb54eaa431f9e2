"""The two ways a command ends badly, as exceptions the command line prints without a traceback."""


class UserError(Exception):
    """Wrong use: a bad option, a missing file. Exit status 2."""


class Failure(Exception):
    """Right use that did not work out: a broker that vanished, a check that failed. Exit status 1."""
