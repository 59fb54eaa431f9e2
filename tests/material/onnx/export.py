"""Writes the .onnx files beside it from small PyTorch networks: `python export.py`, with torch 2.13 and onnx installed.

The tests read the files and need no PyTorch. The weights are random; batch normalisations hold statistics of random batches.
"""

from pathlib import Path

import torch
from torch import nn

HERE = Path(__file__).parent


class Squeeze(nn.Module):
    """Squeeze-and-excitation, as in MobileNet v3."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, 4, 1), nn.ReLU(), nn.Conv2d(4, channels, 1), nn.Hardsigmoid()
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.gate(x)


class Residual(nn.Module):
    """A residual block with a strided shortcut, as in ResNet."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs),
        )  # fmt: skip
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


class Skip(nn.Module):
    """Down and up again, with a concatenation: a small U-Net."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.middle = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 6, 3, padding=1, dilation=1)
        self.up, self.head = nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(10, 3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = torch.relu(self.down(x))
        deep = self.up(torch.tanh(self.middle(nn.functional.max_pool2d(wide, 2))))
        return torch.softmax(self.head(torch.cat([wide, deep], 1)).mean((2, 3)), 1)


NETWORKS = {
    "perceptron": (nn.Sequential(nn.Linear(6, 12), nn.ReLU6(), nn.Linear(12, 2), nn.Softmax(1)), (6,)),
    "lenet": (
        nn.Sequential(
            nn.Conv2d(1, 6, 5, padding=2), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(6, 8, 3), nn.LeakyReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(32, 10), nn.Softmax(1),
        ),
        (1, 12, 12),
    ),
    "mobile": (
        nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(8), nn.Hardswish(),
            nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.PReLU(8), Squeeze(8), nn.Conv2d(8, 12, 1), nn.Hardtanh(-2, 3),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 1), nn.Sigmoid(),
        ),
        (3, 16, 16),
    ),
    "residual": (
        nn.Sequential(
            Residual(3, 8), Residual(8, 8), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3), nn.Softmax(1)
        ),
        (3, 12, 12),
    ),
    "skip": (Skip(), (2, 8, 8)),
    "wave": (
        nn.Sequential(
            nn.Conv1d(3, 8, 5, stride=2, padding=2), nn.BatchNorm1d(8), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(8, 8, 3, dilation=2, groups=8), nn.SiLU(), nn.Flatten(), nn.Linear(96, 1), nn.Sigmoid(),
        ),
        (3, 64),
    ),
}  # fmt: skip


def main() -> None:
    torch.manual_seed(1)
    for name, (network, shape) in NETWORKS.items():
        network.train()
        with torch.no_grad():
            for _ in range(20):
                network(torch.randn(16, *shape))
        network.eval()
        torch.onnx.export(network, (torch.randn(1, *shape),), HERE / f"{name}.onnx", dynamo=False, opset_version=17)
        print(name, (HERE / f"{name}.onnx").stat().st_size)


if __name__ == "__main__":
    main()
