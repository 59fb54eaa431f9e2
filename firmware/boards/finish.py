# Completes a `h2t2 flash` that was cut off while it put the new files in place: flash.todo names them, one a line.
import os

with open("flash.todo") as file:
    names = file.read().split("\n")
for name in names:
    if name:
        try:
            os.rename(name + ".new", name)
        except OSError:
            pass  # in place already
os.remove("flash.todo")
