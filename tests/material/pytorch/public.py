"""The networks of public.toml: their layers in our own words."""

from collections.abc import Callable

import torch
from torch import nn


class Joined(nn.Module):
    """Branches of the same input, one behind the other along an axis, or added where no axis is given."""

    def __init__(self, *branches: nn.Module, axis: int | None = 1) -> None:
        super().__init__()
        self.branches, self.axis = nn.ModuleList(branches), axis

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = [branch(x) for branch in self.branches]
        return sum(parts) if self.axis is None else torch.cat(parts, self.axis)


class Apply(nn.Module):
    """A function of tensors as a layer."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


def added(*branches: nn.Module) -> Joined:
    return Joined(*branches, axis=None)


def normed(convolution: nn.Module, *after: nn.Module, of: type = nn.BatchNorm2d) -> nn.Sequential:
    """A convolution with batch normalisation, and what comes behind."""
    return nn.Sequential(convolution, of(convolution.out_channels), *after)


class Res8(nn.Module):
    """19 maps: a convolution, means of 4 x 3, six more; after every second one the sum with the last sum."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, 19, 3, padding=1, bias=False), nn.ReLU(), nn.AvgPool2d((4, 3)))
        pairs = range(3)
        self.pairs = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(19, 19, 3, padding=1, bias=False), nn.ReLU(), nn.BatchNorm2d(19, affine=False),
                nn.Conv2d(19, 19, 3, padding=1, bias=False), nn.ReLU(),
            ) for _ in pairs
        )  # fmt: skip
        self.norms = nn.ModuleList(nn.BatchNorm2d(19, affine=False) for _ in pairs)
        self.last = nn.Linear(19, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = x = self.first(x.unsqueeze(1))
        for pair, norm in zip(self.pairs, self.norms):
            total = pair(x) + total
            x = norm(total)
        return self.last(x.flatten(2).mean(2))


class Bands(nn.Module):
    """Batch normalisation of each channel in five bands of frequencies."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels * 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, channels, height, width = x.shape
        return self.norm(x.view(batch, channels * 5, height // 5, width)).view(batch, channels, height, width)


class Broadcast(nn.Module):
    """Along frequencies a convolution in bands; along time one of its mean over frequencies, which every frequency gets."""

    def __init__(self, before: int, channels: int, stride: int, dilation: int) -> None:
        super().__init__()
        self.kept = before == channels
        first = [] if self.kept else [normed(nn.Conv2d(before, channels, 1, bias=False), nn.ReLU())]
        frequencies = nn.Conv2d(channels, channels, (3, 1), (stride, 1), (1, 0), groups=channels, bias=False)
        self.frequencies = nn.Sequential(*first, frequencies, Bands(channels))
        time = nn.Conv2d(channels, channels, (1, 3), padding=(0, dilation), dilation=(1, dilation), groups=channels, bias=False)
        self.time = nn.Sequential(
            nn.AdaptiveAvgPool2d((1, None)), normed(time, nn.SiLU()), nn.Conv2d(channels, channels, 1, bias=False)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.frequencies(x)
        y = self.time(y) + y
        return torch.relu(y + x if self.kept else y)


def bcresnet() -> nn.Sequential:
    """Stages of 2, 2, 4 and 4 blocks with 8, 12, 16 and 20 channels."""
    layers: list[nn.Module] = [normed(nn.Conv2d(1, 16, 5, (2, 1), 2, bias=False), nn.ReLU())]
    before = 16
    for stage, (channels, blocks) in enumerate(((8, 2), (12, 2), (16, 4), (20, 4))):
        for block in range(blocks):
            stride = 2 if stage in (1, 2) and not block else 1
            layers.append(Broadcast(before, channels, stride, 2**stage))
            before = channels
    layers += [nn.Conv2d(20, 20, 5, padding=(0, 2), groups=20, bias=False)]
    layers += [normed(nn.Conv2d(20, 32, 1, bias=False), nn.ReLU()), nn.AdaptiveAvgPool2d(1), nn.Conv2d(32, 2, 1), nn.Flatten()]
    return nn.Sequential(*layers)


def m5() -> nn.Sequential:
    layers: list[nn.Module] = []
    for before, channels, width, stride in ((1, 32, 80, 16), (32, 32, 3, 1), (32, 64, 3, 1), (64, 64, 3, 1)):
        convolution = nn.Conv1d(before, channels, width, stride)
        layers += [normed(convolution, nn.ReLU(), nn.MaxPool1d(4), of=nn.BatchNorm1d)]
    mean = Apply(lambda x: nn.functional.avg_pool1d(x, x.shape[-1]).permute(0, 2, 1))
    return nn.Sequential(*layers, mean, nn.Linear(64, 2), nn.Flatten())


class Last(nn.Module):
    """An LSTM over (batch, time, numbers): all steps."""

    def __init__(self, before: int, width: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(before, width, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.lstm(x)[0]


def deep_conv_lstm() -> nn.Sequential:
    """Its LSTM runs along time; that of the repository runs along the batch, by a layout that its author did not mean."""
    layers: list[nn.Module] = [Apply(lambda x: x.unsqueeze(1))]
    for before in (1, 64, 64, 64):
        layers += [nn.Conv2d(before, 64, (5, 1)), nn.ReLU()]
    flat = Apply(lambda x: x.permute(0, 2, 1, 3).flatten(2))
    return nn.Sequential(*layers, flat, Last(64 * 3, 128), nn.Linear(128, 2), Apply(lambda x: x[:, -1]))


class Sensors(nn.Module):
    """Attention of each sensor to the others at one time; the softmax is taken over who attends."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.gamma = nn.Parameter(torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights = torch.softmax(self.query(x) @ self.key(x).permute(0, 2, 1), 1)
        return (self.gamma * (self.value(x).permute(0, 2, 1) @ weights) + x.permute(0, 2, 1)).permute(0, 2, 1)


class TinyHar(nn.Module):
    """Convolutions of each sensor, attention between sensors at each time, an LSTM, attention over time."""

    def __init__(self, sensors: int = 6, width: int = 20) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for before, stride in ((1, 1), (width, 2), (width, 1), (width, 2)):
            layers += [nn.Conv2d(before, width, (5, 1), (stride, 1)), nn.ReLU(), nn.BatchNorm2d(width)]
        self.each, self.between = nn.Sequential(*layers), Sensors(width)
        self.fuse, self.time = nn.Linear(sensors * width, 2 * width), Last(2 * width, 2 * width)
        self.weight = nn.Sequential(nn.Linear(2 * width, 2 * width), nn.Tanh(), nn.Linear(2 * width, 1, bias=False))
        self.gamma, self.last = nn.Parameter(torch.zeros(1)), nn.Linear(2 * width, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.each(x).permute(0, 3, 2, 1)
        x = torch.cat([self.between(x[:, :, t, :]).unsqueeze(3) for t in range(x.shape[2])], -1)
        x = x.permute(0, 3, 1, 2)
        x = self.time(torch.relu(self.fuse(x.reshape(x.shape[0], x.shape[1], -1))))
        weights = torch.softmax(self.weight(x).squeeze(2), 1).unsqueeze(2)
        return self.last(x[:, -1, :] + self.gamma * (weights * x).sum(1))


class Inception(nn.Module):
    """Two blocks of three modules each, with a sum over each block."""

    def __init__(self, before: int = 6, width: int = 32) -> None:
        super().__init__()
        out = 4 * width
        self.blocks = nn.ModuleList()
        for start in (before, out):
            modules = [self.part(start if not n else out, width) for n in range(3)]
            short = nn.BatchNorm1d(out) if start == out else normed(nn.Conv1d(start, out, 1, bias=False), of=nn.BatchNorm1d)
            self.blocks += [nn.Sequential(added(nn.Sequential(*modules), short), nn.ReLU())]
        self.last = nn.Linear(out, 2)

    @staticmethod
    def part(before: int, width: int) -> nn.Sequential:
        convolutions = (nn.Conv1d(width, width, k, padding=k // 2, bias=False) for k in (39, 19, 9))
        narrow = nn.Sequential(nn.Conv1d(before, width, 1, bias=False), Joined(*convolutions))
        largest = nn.Sequential(nn.MaxPool1d(3, 1, 1), nn.Conv1d(before, width, 1, bias=False))
        return nn.Sequential(Joined(narrow, largest), nn.BatchNorm1d(4 * width), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return self.last(nn.functional.adaptive_avg_pool1d(x, 1).flatten(1))


def resnet_20() -> nn.Sequential:
    def block(before: int, channels: int, stride: int) -> nn.Sequential:
        first = normed(nn.Conv2d(before, channels, 3, stride, 1, bias=False), nn.ReLU())
        second = normed(nn.Conv2d(channels, channels, 3, 1, 1, bias=False))
        pad = (0, 0, 0, 0, channels // 4, channels // 4)
        short = nn.Identity() if stride == 1 else Apply(lambda x: nn.functional.pad(x[:, :, ::2, ::2], pad))
        return nn.Sequential(added(nn.Sequential(first, second), short), nn.ReLU())

    layers: list[nn.Module] = [normed(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.ReLU())]
    before = 16
    for channels in (16, 32, 64):
        for n in range(3):
            layers.append(block(before, channels, 2 if channels > 16 and not n else 1))
            before = channels
    mean = Apply(lambda x: nn.functional.avg_pool2d(x, x.shape[3]).flatten(1))
    return nn.Sequential(*layers, mean, nn.Linear(64, 2))


def shuffled(x: torch.Tensor) -> torch.Tensor:
    """The channels of both halves by turns."""
    batch, channels, height, width = x.shape
    return x.view(batch, 2, channels // 2, height, width).transpose(1, 2).contiguous().view(batch, -1, height, width)


class Half(nn.Module):
    """Layers for the second half of the channels; the first half stays."""

    def __init__(self, layers: nn.Module) -> None:
        super().__init__()
        self.layers = layers

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first, second = x.chunk(2, 1)
        return torch.cat((first, self.layers(second)), 1)


def shufflenet() -> nn.Sequential:
    def each(channels: int, stride: int) -> nn.Sequential:
        return normed(nn.Conv2d(channels, channels, 3, stride, 1, groups=channels, bias=False))

    def point(before: int, channels: int) -> nn.Sequential:
        return normed(nn.Conv2d(before, channels, 1, bias=False), nn.ReLU())

    layers: list[nn.Module] = [normed(nn.Conv2d(3, 24, 3, 2, 1, bias=False), nn.ReLU()), nn.MaxPool2d(3, 2, 1)]
    before = 24
    for channels, repeats in ((48, 4), (96, 8), (192, 4)):
        half = channels // 2
        second = nn.Sequential(point(before, half), each(half, 2), point(half, half))
        layers += [Joined(nn.Sequential(each(before, 2), point(before, half)), second), Apply(shuffled)]
        for _ in range(repeats - 1):
            layers += [Half(nn.Sequential(point(half, half), each(half, 1), point(half, half))), Apply(shuffled)]
        before = channels
    return nn.Sequential(*layers, point(192, 1024), Apply(lambda x: x.mean([2, 3])), nn.Linear(1024, 2))


def table_resnet(width: int = 64) -> nn.Sequential:
    def block() -> Joined:
        inner = nn.BatchNorm1d(width), nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)
        return added(nn.Identity(), nn.Sequential(*inner))

    return nn.Sequential(nn.Linear(30, width), block(), block(), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 2))


class Heads(nn.Module):
    """Attention with eight heads, as products of plain linear layers."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        def split(y: torch.Tensor) -> torch.Tensor:
            return y.reshape(len(y), y.shape[1], 8, -1).transpose(1, 2).reshape(len(y) * 8, y.shape[1], -1)

        query, key, value = split(self.query(x)), split(self.key(context)), split(self.value(context))
        y = torch.softmax(query @ key.transpose(1, 2) / query.shape[-1] ** 0.5, -1) @ value
        return self.out(y.reshape(len(x), 8, x.shape[1], -1).transpose(1, 2).reshape(x.shape))


class Tokens(nn.Module):
    """A token for each number and one for the answer; three layers, of which the last attends for the answer alone."""

    def __init__(self, numbers: int = 30, width: int = 64) -> None:
        super().__init__()
        self.weight = nn.Parameter((torch.rand(numbers + 1, width) - 0.5) / 4)
        self.bias = nn.Parameter((torch.rand(numbers, width) - 0.5) / 4)
        self.attend = nn.ModuleList(Heads(width) for _ in range(3))
        hidden = int(width * 4 / 3)
        self.wide = nn.ModuleList(nn.Linear(width, hidden * 2) for _ in range(3))
        self.narrow = nn.ModuleList(nn.Linear(hidden, width) for _ in range(3))
        self.before = nn.ModuleList([nn.Identity(), nn.LayerNorm(width), nn.LayerNorm(width)])
        self.between = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.last = nn.Sequential(nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.cat([torch.ones(len(x), 1), x], 1)
        x = self.weight[None] * x[:, :, None] + torch.cat([torch.zeros(1, self.bias.shape[1]), self.bias])[None]
        for n in range(3):
            y = self.before[n](x)
            x = x[:, :1] if n == 2 else x
            x = x + self.attend[n](y[:, :1] if n == 2 else y, y)
            a, b = self.wide[n](self.between[n](x)).chunk(2, -1)
            x = x + self.narrow[n](a * torch.relu(b))
        return self.last(x[:, 0])


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "res8_narrow": Res8, "bcresnet_1": bcresnet, "m5": m5, "deep_conv_lstm": deep_conv_lstm, "tiny_har": TinyHar,
    "inception_time": Inception, "resnet_20": resnet_20, "shufflenet_v2": shufflenet, "table_resnet": table_resnet,
    "ft_transformer": Tokens,
}  # fmt: skip
