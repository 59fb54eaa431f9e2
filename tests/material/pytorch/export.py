"""Trains thirteen small PyTorch networks and those of public.py: `make pytorch`.

It writes the thirteen as .onnx beside this file, the public ones into results/pytorch, and trains none whose file is there.
`python export.py FOLDER` writes the thirteen there in three forms: NAME.onnx as torch.onnx.export() writes it, NAME_17.onnx by
its older exporter, and NAME.pt2 by torch.export.save(). Tests read the .onnx files beside this file and need no PyTorch.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from public import NETWORKS as PUBLIC_NETWORKS
from samples import FIT, PUBLIC, TEST, draw
from torch import nn

HERE = Path(__file__).parent
RESULTS = HERE.parents[2] / "results/pytorch"
LEARNED, SEEDS = 0.88, 5  # a network is kept that is right so often; some processors train one that is not, from some seeds


class Squeeze(nn.Module):
    """Squeeze-and-excitation."""

    def __init__(self, channels):
        super().__init__()
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, 4, 1), nn.ReLU(), nn.Conv2d(4, channels, 1), nn.Sigmoid()
        )

    def forward(self, x):
        return x * self.gate(x)


class Activations(nn.Module):
    """One convolution behind each activation."""

    def __init__(self):
        super().__init__()
        functions = [nn.ELU(), nn.Mish(), nn.Softplus(), nn.GELU(), nn.SELU(), nn.SiLU()]
        self.layers = nn.Sequential(*(layer for f in functions for layer in (nn.Conv2d(8, 8, 3, padding=1, groups=8), f)))
        self.first, self.last = nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.Linear(8, 1)

    def forward(self, x):
        return torch.sigmoid(self.last(self.layers(self.first(x)).mean((2, 3))))


class Select(nn.Module):
    """Channels and steps are chosen by constant indices; the rest is split, and its largest numbers count."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv1d(6, 12, 5, padding=2), nn.Linear(18, 2)

    def forward(self, x):
        x = torch.relu(self.first(x))
        a, b, c = torch.split(x, [4, 4, 4], 1)
        a = a[:, [3, 0, 2], 2:18:3].mean(2)
        b = nn.functional.adaptive_max_pool1d(b, 1).flatten(1)
        largest = c.amax(2), x[:, 1, :7]
        return torch.softmax(self.last(torch.cat([a, b, *largest], 1)), 1)


class Recurrent(nn.Module):
    """A recurrent layer over time, of whose last step a linear layer makes scores."""

    def __init__(self, layer, width):
        super().__init__()
        self.layer, self.last = layer, nn.Linear(width, 2)

    def forward(self, x):
        return torch.softmax(self.last(self.layer(x.transpose(1, 2))[0][:, -1]), 1)


class Mixer(nn.Module):
    """A block of an MLP mixer: layer normalisation, a layer over time, another over channels."""

    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(6), nn.LayerNorm(6)])
        self.time = nn.Sequential(nn.Linear(20, 16), nn.GELU(), nn.Linear(16, 20))
        self.channels = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 6))
        self.last = nn.Linear(6, 1)

    def forward(self, x):
        x = x.transpose(1, 2)
        x = x + self.time(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
        x = x + self.channels(self.norms[1](x))
        return torch.sigmoid(self.last(x.mean(1)))


class Attention(nn.Module):
    """A transformer's encoder layer over time, behind an embedding with positions."""

    def __init__(self):
        super().__init__()
        self.embed, self.place = nn.Linear(6, 16), nn.Parameter(torch.randn(1, 20, 16) * 0.1)
        self.attend, self.norms = (
            nn.MultiheadAttention(16, 2, batch_first=True),
            nn.ModuleList([nn.LayerNorm(16), nn.LayerNorm(16)]),
        )
        self.feed, self.last = nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 16)), nn.Linear(16, 2)

    def forward(self, x):
        x = self.embed(x.transpose(1, 2)) + self.place
        x = self.norms[0](x + self.attend(x, x, x, need_weights=False)[0])
        x = self.norms[1](x + self.feed(x))
        return torch.softmax(self.last(x.mean(1)), 1)


def scores(*layers, outputs=1):
    """Layers on pictures, and a score."""
    end = nn.Sigmoid() if outputs == 1 else nn.Softmax(1)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LazyLinear(outputs), end)


def networks():
    """The thirteen, untrained, each time with the same first weights."""
    torch.manual_seed(1)
    return {
        "perceptron": nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 2), nn.Softmax(1)),
        "mobile": scores(
            nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(8), nn.Hardswish(),
            nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.BatchNorm2d(8), nn.ReLU6(), nn.Conv2d(8, 12, 1),
        ),
        "squeeze": scores(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), Squeeze(8), nn.Conv2d(8, 8, 3), nn.ReLU(), outputs=2),
        "normed_first": scores(
            nn.BatchNorm2d(3), nn.Conv2d(3, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3), nn.ReLU()
        ),
        "grouped": scores(
            nn.Conv2d(3, 8, 1), nn.ReLU(), nn.Conv2d(8, 16, 3, groups=4), nn.ReLU(), nn.Conv2d(16, 8, 1), nn.ReLU()
        ),
        "autoencoder": scores(
            nn.Conv2d(3, 6, 3, stride=2, padding=1), nn.ReLU(),
            nn.ConvTranspose2d(6, 4, 3, stride=2, padding=1, output_padding=1), nn.ReLU(),
            nn.ConvTranspose2d(4, 6, 2, stride=2), nn.ReLU(), outputs=2,
        ),
        "group_norm": scores(
            nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2), nn.InstanceNorm2d(8, affine=True),
            nn.LeakyReLU(), nn.Conv2d(8, 8, 3), nn.ReLU(),
        ),
        "activations": Activations(),
        "select": Select(),
        "lstm": Recurrent(nn.LSTM(6, 10, batch_first=True, bidirectional=True), 20),
        "gru": Recurrent(nn.GRU(6, 10, batch_first=True), 10),
        "mixer": Mixer(),
        "attention": Attention(),
    }  # fmt: skip


def train(network, name, count=1500, passes=30, batch=64):
    """Fit by Adam, until nothing more is gained in 30 passes."""
    x, y = (torch.from_numpy(part) for part in draw(name, count, 1))
    network(x[:2])  # lazy layers
    optimiser = torch.optim.Adam(network.parameters(), 0.005 if passes == 30 else 0.003)
    for _ in range(passes):
        for part in torch.randperm(len(x)).split(batch):
            p = network(x[part])
            p = p[:, 0] if p.shape[1] == 1 else p[:, 1]
            optimiser.zero_grad()
            nn.functional.binary_cross_entropy(p.clamp(1e-6, 1 - 1e-6), y[part].float()).backward()
            optimiser.step()
    return network.eval()


def train_public(name):
    """The trained network of public.toml as results/pytorch/NAME.onnx, where it is not there yet."""
    path = RESULTS / f"{name}.onnx"
    seed = 0
    while not path.exists():
        seed += 1
        torch.manual_seed(seed)
        network = nn.Sequential(PUBLIC_NETWORKS[name](), nn.Softmax(1))
        network = train(network, name, count=500, passes=PUBLIC[name]["passes"], batch=32)
        if accuracy(network, *draw(name, 500, FIT)) > LEARNED:
            write(network, name, path)
        elif seed == SEEDS:
            sys.exit(f"{name}: no seed up to {SEEDS} trains a network that is right on {LEARNED:.0%} of the samples")


def accuracy(network, x, y):
    """The share of the samples on which a trained network is right."""
    with torch.no_grad():
        p = network(torch.from_numpy(x)).numpy()
    return np.mean((p[:, -1] >= 0.5) == y)


def write(network, name, path):
    """Write a network as .onnx, and tell how often it is right."""
    x, y = draw(name, 500, TEST)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".part")  # a file that is there is whole
    torch.onnx.export(network, (torch.from_numpy(x[:1]),), new, external_data=False, verbose=False)
    new.rename(path)
    print(name, x.shape[1:], f"accuracy {accuracy(network, x, y):.3f}", flush=True)


def main():
    torch.set_num_threads(1)
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    for name, network in networks().items():
        path = (folder or HERE) / f"{name}.onnx"
        if path.exists():
            continue
        torch.manual_seed(1)
        network = train(network, name)
        write(network, name, path)
        if folder:
            example = (torch.from_numpy(draw(name, 1, TEST)[0]),)
            torch.onnx.export(network, example, folder / f"{name}_17.onnx", dynamo=False, opset_version=17)
            torch.export.save(torch.export.export(network, example), folder / f"{name}.pt2")
    for name in () if folder else PUBLIC:
        train_public(name)


if __name__ == "__main__":
    main()
