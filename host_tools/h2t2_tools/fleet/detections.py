"""The topics and messages of detectors that a gate reads."""

OWN = "/decision"  # ends the topics of decisions
LARGEST = 1 << 20  # bytes of a message


def topic_filter(topic: str) -> str:
    """The topic. ValueError where it is no MQTT topic filter."""
    levels = topic.split("/")
    if not topic or len(topic.encode()) > 1024 or "\0" in topic or "#" in "".join(levels[:-1]):
        raise ValueError("want an MQTT topic; # only at its end")
    if any(len(level) > 1 and ("+" in level or "#" in level) for level in levels):
        raise ValueError("want + and # as whole levels")
    return topic
