"""Messages as the documentation of each preset's detector shows them, and the pictures and clips behind them."""

import base64
import io
import math
import wave
from array import array
from typing import Any

RATE_HZ = 8000  # of simulated clips
CLIP_S = 0.05
BEGAN = 1607123955.475377  # the time in the documentation of Frigate


def tracked(identity: str, camera: str, top_score: float, at: float, **entries: Any) -> dict[str, Any]:
    """One state of an object that Frigate tracks: https://docs.frigate.video/integrations/mqtt/, topic frigate/events."""
    return {
        "id": identity, "camera": camera, "frame_time": at, "snapshot": {
            "frame_time": at, "box": [415, 489, 528, 700], "area": 12728, "region": [260, 446, 660, 846], "score": top_score,
            "attributes": [],
        },
        "label": "person", "sub_label": None, "top_score": top_score, "false_positive": False, "start_time": at,
        "end_time": None, "score": top_score, "box": [424, 500, 536, 712], "area": 23744, "ratio": 2.113207,
        "region": [264, 450, 667, 853], "current_zones": ["driveway"], "entered_zones": ["yard", "driveway"],
        "thumbnail": None, "has_snapshot": True, "has_clip": False, "active": True, "stationary": False,
        "motionless_count": 0, "position_changes": 2, "attributes": {}, "current_attributes": [], **entries,
    }  # fmt: skip


def event(kind: str, identity: str, camera: str, top_score: float, at: float = BEGAN) -> dict[str, Any]:
    """A message of Frigate. kind: new, update or end."""
    after = tracked(identity, camera, top_score, at, **({"end_time": at + 9} if kind == "end" else {}))
    return {"type": kind, "before": tracked(identity, camera, top_score / 2, at - 1), "after": after}


def bird(number: int, scientific: str, common: str, confidence: float, at: str = "14:30:00") -> dict[str, Any]:
    """A message of BirdNET-Go: https://github.com/tphakala/birdnet-go, MQTTEventDTO in internal/mqtt/dto.go.

    Args:
        number: of the detection in BirdNET-Go's database.
        scientific, common: names of the species.
        confidence: 0 to 1.
        at: the time of day.
    """
    clip = f"2024/01/{scientific.lower().replace(' ', '_')}_{confidence * 100:.0f}p_{number}.wav"
    return {
        "Date": "2024-01-15", "Time": at, "CommonName": common, "ScientificName": scientific, "Confidence": confidence,
        "Latitude": 60.1, "Longitude": 24.9, "ClipName": clip, "ProcessingTime": 5e7, "detectionId": number,
        "sourceId": "rtsp_87b89761", "occurrence": 0.3, "sourceType": "rtsp", "sourceName": "garden",
        "modelName": "BirdNET-Analyzer", "modelVersion": "2.4", "timezone": "Europe/Helsinki",
    }  # fmt: skip


def generic(identity: str, score: float, picture: bytes) -> dict[str, Any]:
    """A message of the preset `generic`, with the picture in it."""
    return {"id": identity, "score": score, "picture": base64.b64encode(picture).decode()}


def jpeg(colour: str = "red") -> bytes:
    """A small picture of one colour."""
    from PIL import Image

    with io.BytesIO() as file:
        Image.new("RGB", (8, 8), colour).save(file, "JPEG")
        return file.getvalue()


def clip(pitch_hz: int) -> bytes:
    """A short WAV file with a tone."""
    angles = (2 * math.pi * pitch_hz * n / RATE_HZ for n in range(round(RATE_HZ * CLIP_S)))
    samples = array("h", (round(20000 * math.sin(angle)) for angle in angles))
    with io.BytesIO() as file:
        with wave.open(file, "wb") as writer:
            writer.setnchannels(1)
            writer.setsampwidth(2)
            writer.setframerate(RATE_HZ)
            writer.writeframes(samples.tobytes())
        return file.getvalue()
