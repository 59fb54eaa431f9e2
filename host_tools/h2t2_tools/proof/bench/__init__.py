"""`h2t2 bench`: one claim a file, both of its sides in one run.

Every file has TITLE, measure(progress, ...) -> what was measured, as JSON holds it, report(measured) -> tables and lines for
people, and, where something must hold, broken(measured) -> what does not.
"""
