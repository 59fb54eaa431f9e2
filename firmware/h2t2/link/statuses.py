# The status of a reply in words, by its number in wire.py. A board has this module in memory only while it logs a failure.
STATUS = (
    "ok", "malformed request", "model not served here", "the remote model failed", "busy", "refused: it hung the model before",
    "no worker serves this model", "larger than the model takes", "another version of the wire format",
    "later: the remote model is away",
)  # fmt: skip
