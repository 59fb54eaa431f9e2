# An app for a Raspberry Pi: the camera, or where there is none the pictures of a folder, cut to a square, grey and small, as
# the digits pair wants them; what was decided is published by MQTT, for a home automation to act on.
import json
import os
from pathlib import Path

import paho.mqtt.client as mqtt
from PIL import Image

FOLDER = os.environ.get("PICTURES", "pictures")  # where there is no camera
TOPIC = "home/digit"
SIDE, BRIGHTEST = 8, 1.0  # of the pictures that the models were trained on
patient = True  # the pictures of a folder can wait


def setup(config):
    """Once, before the first sample. config: the node's."""
    global camera, pictures, client
    camera = None
    try:
        from picamera2 import Picamera2

        camera = Picamera2()
        camera.start()
    except ImportError:
        pictures = iter(sorted(Path(FOLDER).glob("*.png")))
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
    client.connect(config["broker"], config["port"])
    client.loop_start()


def picture():
    """The next picture."""
    if camera:
        return camera.capture_image()
    return Image.open(next(pictures))  # StopIteration after the last: the node ends


def sense():
    """64 numbers from 0 to 1: the middle of the picture, grey, 8 by 8."""
    taken = picture().convert("L")
    side = min(taken.size)
    left, top = (taken.width - side) // 2, (taken.height - side) // 2
    small = taken.crop((left, top, left + side, top + side)).resize((SIDE, SIDE), Image.Resampling.BOX)
    return [value * BRIGHTEST / 255 for value in small.tobytes()]


def act(decision):
    """A message: whatever listens to that topic acts."""
    client.publish(TOPIC, json.dumps({"label": decision.label, "source": decision.source, "score": decision.score}), qos=1)
