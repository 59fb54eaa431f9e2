# Sets a machine's clock. A board has this module in memory only while it does.


def set_clock(seconds: int) -> None:
    """Set the machine's clock, Unix seconds."""
    from time import gmtime

    from machine import RTC

    year, month, day, hour, minute, second, weekday = gmtime(seconds - (946684800 if gmtime(0)[0] == 2000 else 0))[:7]
    RTC().datetime((year, month, day, weekday + 1, hour, minute, second, 0))
