"""Times as the pages show them: in UTC, as the logs do, and they say so."""

import time


def clock_time(unix_s: float) -> str:
    """The time of day.

    >>> clock_time(0)
    '00:00:00 UTC'
    """
    return time.strftime("%H:%M:%S UTC", time.gmtime(unix_s))


def date_time(unix_s: float) -> str:
    """The date and the time of day.

    >>> date_time(0)
    '1970-01-01 00:00:00 UTC'
    """
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(unix_s))


def date_minute(unix_s: float) -> str:
    """The date and the minute.

    >>> date_minute(0)
    '1970-01-01 00:00 UTC'
    """
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(unix_s))
