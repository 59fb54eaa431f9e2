"""From a .tflite to what a board runs: reading it, looking at it, preparing a bundle, checking the bundle byte for byte."""
