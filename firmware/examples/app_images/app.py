# An app for a Raspberry Pi. It takes pictures with the camera, or from a folder without a camera, and makes them square, grey
# and small, as the digits pair reads them. It publishes decisions by MQTT, for a home automation.
import json
import os
from pathlib import Path

import paho.mqtt.client as mqtt
from PIL import Image

FOLDER = os.environ.get("PICTURES", "pictures")  # pictures for machines without a camera
TOPIC = "home/digit"
SIDE, BRIGHTEST = 8, 1.0  # as in the training data
patient = True  # the node may wait for an answer before it takes the next picture


def setup(config):
    """Prepare, once before the first sample. config: the node's."""
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
    """Return the next picture."""
    if camera:
        return camera.capture_image()
    return Image.open(next(pictures))  # StopIteration after the last one ends the node


def sense():
    """Return 64 numbers from 0 to 1: the middle of the picture, grey, 8 by 8."""
    photo = picture().convert("L")
    side = min(photo.size)
    x, y = (photo.width - side) // 2, (photo.height - side) // 2
    small = photo.crop((x, y, x + side, y + side)).resize((SIDE, SIDE), Image.Resampling.BOX)
    return [value * BRIGHTEST / 255 for value in small.tobytes()]


def act(decision):
    """Publish the decision."""
    client.publish(TOPIC, json.dumps({"label": decision.label, "source": decision.source, "score": decision.score}), qos=1)
