# An app for an ESP32-S3 with an OV2640: a small grey picture every few seconds, a lamp on a pin. It needs a firmware with the
# module `camera` (github.com/cnadler86/micropython-camera-API); the official one has none.
from camera import Camera, FrameSize, GrabMode, PixelFormat
from machine import Pin

camera = None
OPTIONS = {  # with a generic firmware also the pins, as its README says
    "frame_size": FrameSize.R96X96,
    "pixel_format": PixelFormat.GRAYSCALE,
    "grab_mode": GrabMode.LATEST,
    "fb_count": 2,
}


def setup(config):
    """Once, before the first sample."""
    global lamp
    lamp = Pin(21, Pin.OUT)


def sense():
    """The bytes of a picture of 96 by 96 greys; OSError while the camera gives none."""
    global camera
    if not camera:
        camera = Camera(**OPTIONS)
    frame = camera.capture()
    if frame is None:
        camera.deinit()
        camera = None  # the next call starts it again
        raise OSError("the camera gives no picture")
    picture = bytes(frame)  # the items of frame are signed, and the next picture overwrites them
    camera.free_buffer()
    return picture


def act(decision):
    """Light the lamp during the event."""
    lamp.value(decision.label)
