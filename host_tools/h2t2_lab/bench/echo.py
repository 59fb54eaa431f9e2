"""The process that answers the raw echo of `h2t2-lab bench offload`: python -m h2t2_lab.bench.echo HOST PORT."""

import sys

import paho.mqtt.client as mqtt

from h2t2.cpython.mqtt_session import make_client


def main(host: str, port: int) -> None:
    """Publish every message of echo/request on echo/reply until the process is ended."""
    client = make_client("echo-peer")

    def echo(client: mqtt.Client, _data: object, message: mqtt.MQTTMessage) -> None:
        client.publish("echo/reply", message.payload, qos=1)

    client.on_message = echo
    client.on_connect = lambda client, *_: client.subscribe("echo/request", qos=1)
    client.on_subscribe = lambda *_: print("ready", file=sys.stderr, flush=True)
    client.connect(host, port)
    client.loop_forever()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
