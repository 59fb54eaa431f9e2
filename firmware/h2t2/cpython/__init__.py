# What only CPython runs, on a Pi or a desktop: TFLite models, MQTT over paho, threads, signals, the worker's side of the wire.
# Portable code imports from here inside functions only: no board has these files.
