"""Trains the phishing LDLs: int8 logistic regressions, on all 30 features and on six (56 bytes of numbers, as the paper's).

Run from anywhere, with the extra `train`:  python models/phishing/train.py [--data FOLDER]
"""

from pathlib import Path

import keras

from h2t2_lab import datasets
from h2t2_lab.recipe import arguments, write_ldl

SIX = [5, 6, 12, 14, 15, 25]  # Prefix_Suffix, having_Sub_Domain, Request_URL, Links_in_tags, SFH, web_traffic


def main() -> None:
    args = arguments(__doc__, Path(__file__).parent, epochs=30)
    data = datasets.load("phishing", args.data)
    for out, columns in ((args.out, list(range(data.x_train.shape[1]))), (args.out.parent / f"{args.out.name}_weak", SIX)):
        keras.utils.set_random_seed(7)
        model = keras.Sequential([keras.Input((len(columns),)), keras.layers.Dense(1, activation="sigmoid")])
        model.compile(optimizer=keras.optimizers.Adam(0.01), loss="binary_crossentropy")
        x, xt = data.x_train[:, columns], data.x_test[:, columns]
        model.fit(x, data.y_train, epochs=args.epochs, batch_size=64, verbose=0)
        about = {
            "title": "Phishing",
            "event": "a phishing page",
            "data": "Phishing Websites, UCI Machine Learning Repository; 1,106 samples drawn for the test",
            "licence": "CC BY 4.0",
            "ldl": f"logistic regression on {len(columns)} of 30 features",
            "paper": {"accuracy": 0.75, "fp": 0.12, "fn": 0.13},
        }
        write_ldl(out, about, model, x[:500], (xt, data.y_test), event=0, ship=True)


if __name__ == "__main__":
    main()
