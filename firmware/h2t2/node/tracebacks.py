# The text of an exception's traceback, and the lines of the user's program in it.
import sys

RUNTIME = "h2t2/node/"  # folder of the code that calls the user's program; of a compiled one the names are modules, without .py
INNERMOST = 4  # frames that are named at most


def text(error: BaseException) -> str:
    """Return a traceback."""
    if hasattr(sys, "print_exception"):  # MicroPython
        import io

        buffer = io.StringIO()
        sys.print_exception(error, buffer)
        return buffer.getvalue()
    from traceback import format_exception

    return "".join(format_exception(error))


def user_lines(error: BaseException) -> str:
    """Return where in the user's program an exception was raised, as " at app.py:12 sense, driver.py:40 read"; "" if nowhere.

    The innermost function is the last, and at most INNERMOST are named.
    """
    frames = []
    for line in text(error).split("\n"):
        words = line.strip().split('"')  # File "app.py", line 12, in sense
        if len(words) == 3 and words[0] == "File " and words[1].endswith(".py") and RUNTIME not in words[1]:
            fields = words[2].split(", ")
            frames.append(words[1].split("/")[-1] + fields[1].replace("line ", ":") + fields[-1].replace("in ", " "))
    return " at " + ", ".join(frames[-INNERMOST:]) if frames else ""
