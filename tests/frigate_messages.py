"""Messages as Frigate's documentation shows them (docs.frigate.video/integrations/mqtt, topic frigate/events), and pictures."""

import io

from PIL import Image


def tracked(identity, camera, top_score, at, **more):
    """One state of a tracked object."""
    return {
        "id": identity, "camera": camera, "frame_time": at, "snapshot": {
            "frame_time": at, "box": [415, 489, 528, 700], "area": 12728, "region": [260, 446, 660, 846], "score": top_score,
            "attributes": [],
        },
        "label": "person", "sub_label": None, "top_score": top_score, "false_positive": False, "start_time": at,
        "end_time": None, "score": top_score, "box": [424, 500, 536, 712], "area": 23744, "ratio": 2.113207,
        "region": [264, 450, 667, 853], "current_zones": ["driveway"], "entered_zones": ["yard", "driveway"],
        "thumbnail": None, "has_snapshot": True, "has_clip": False, "active": True, "stationary": False,
        "motionless_count": 0, "position_changes": 2, "attributes": {}, "current_attributes": [], **more,
    }  # fmt: skip


def event(kind, identity, camera, top_score, at=1607123955.475377):
    """A message: kind is new, update or end."""
    after = tracked(identity, camera, top_score, at, **({"end_time": at + 9} if kind == "end" else {}))
    return {"type": kind, "before": tracked(identity, camera, top_score / 2, at - 1), "after": after}


def jpeg(colour="red"):
    """A small picture."""
    with io.BytesIO() as file:
        Image.new("RGB", (8, 8), colour).save(file, "JPEG")
        return file.getvalue()
