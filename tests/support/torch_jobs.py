# SPDX-License-Identifier: Apache-2.0
"""The five reference jobs and a tiny MLP in PyTorch, for tests and benchmarks that compare with PyTorch.

Layers have the names of src/workloads, so that weights can be copied by name.
"""

import torch
import torch.nn.functional as F
from torch import nn


class RestorationNet(nn.Module):
    """Residual network without batch normalisation; learns the difference to add to the picture."""

    def __init__(self, channels, blocks):
        super().__init__()
        self.head = nn.Conv2d(3, channels, 3, padding=1)
        self.body = nn.ModuleList()
        for _ in range(blocks):
            block = nn.Module()
            block.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
            block.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
            self.body.append(block)
        self.tail = nn.Conv2d(channels, 3, 3, padding=1)

    def forward(self, picture):
        x = self.head(picture)
        for block in self.body:
            x = x + block.conv2(F.relu(block.conv1(x)))
        return picture + self.tail(x)


class ConvNorm(nn.Module):
    def __init__(self, inputs, outputs, kernel, stride=1, groups=1):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x):
        return self.norm(self.conv(x))


class LightBlock(nn.Module):
    """1x1, depthwise 3x3, 1x1 around a shortcut."""

    def __init__(self, channels):
        super().__init__()
        self.mix1 = ConvNorm(channels, channels, 1)
        self.depthwise = ConvNorm(channels, channels, 3, groups=channels)
        self.mix2 = ConvNorm(channels, channels, 1)

    def forward(self, x):
        return F.relu(x + self.mix2(self.depthwise(F.relu(self.mix1(x)))))


class Down(nn.Module):
    """Halves the size: depthwise 3x3 with stride 2, then 1x1."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.depthwise = ConvNorm(inputs, inputs, 3, 2, groups=inputs)
        self.mix = ConvNorm(inputs, outputs, 1)

    def forward(self, x):
        return self.mix(self.depthwise(x))


class Exchange(nn.Module):
    """Runs blocks on every branch; then each of the first `outputs` branches gets the sum of all, resampled."""

    def __init__(self, widths, blocks, outputs):
        super().__init__()
        self.branches = nn.ModuleList(nn.ModuleList(LightBlock(w) for _ in range(n)) for w, n in zip(widths, blocks))
        self.paths = nn.ModuleList()
        for to, width in enumerate(widths[:outputs]):
            into = nn.ModuleList()
            for source, inputs in enumerate(widths):
                path = nn.ModuleList()
                if source > to:
                    path.append(ConvNorm(inputs, width, 1))
                for step in range(to - source):
                    path.append(Down(inputs, width if step == to - source - 1 else inputs))
                into.append(path)
            self.paths.append(into)

    def forward(self, xs):
        xs = list(xs)
        for i, branch in enumerate(self.branches):
            for block in branch:
                xs[i] = block(xs[i])
        out = []
        for to, into in enumerate(self.paths):
            total = xs[to]
            for source, path in enumerate(into):
                if source == to:
                    continue
                x = xs[source]
                for i, layer in enumerate(path):
                    x = layer(x)
                    if source < to and i + 1 < len(path):
                        x = F.relu(x)
                if source > to:
                    x = F.interpolate(x, size=xs[to].shape[2:], mode="nearest")
                total = total + x
            out.append(F.relu(total))
        return out


class LocatorNet(nn.Module):
    """Light high-resolution network: up to four branches at 1/4 to 1/32 of the picture that exchange features."""

    def __init__(self, channels=40, points=2):
        super().__init__()
        widths = [channels * 2**i for i in range(4)]
        self.stem = ConvNorm(3, 32, 3, 2)
        self.stem_down = Down(32, channels)
        self.grow = nn.ModuleList()
        self.stages = nn.ModuleList()
        for branches, modules in ((2, 1), (3, 1), (4, 2)):
            self.grow.append(Down(widths[branches - 2], widths[branches - 1]))
            stage = nn.ModuleList()
            for i in range(modules):
                outputs = 1 if branches == 4 and i + 1 == modules else branches
                stage.append(Exchange(widths[:branches], (1, 1, 3, 6), outputs))
            self.stages.append(stage)
        self.head = ConvNorm(channels, channels, 3)
        self.maps = nn.Conv2d(channels, points, 1)
        self.offsets = nn.Conv2d(channels, 2 * points, 1)

    def forward(self, picture):
        xs = [F.relu(self.stem_down(F.relu(self.stem(picture))))]
        for grow, stage in zip(self.grow, self.stages):
            xs.append(F.relu(grow(xs[-1])))
            for module in stage:
                xs = module(xs)
        x = F.relu(self.head(xs[0]))
        return self.maps(x), self.offsets(x)


def locator_loss(maps, offsets, points):
    """Returns the divergence of the maps from a Gaussian at each point, plus the L1 error of the offsets in the cell, in pixels / 4."""
    count, height, width = maps.shape[1], maps.shape[2], maps.shape[3]
    place = points.view(-1, count, 2) / 4 - 0.5
    xs = torch.arange(width, dtype=torch.float32)
    ys = torch.arange(height, dtype=torch.float32)
    dx = xs.view(1, 1, 1, -1) - place[:, :, 0].view(-1, count, 1, 1)
    dy = ys.view(1, 1, -1, 1) - place[:, :, 1].view(-1, count, 1, 1)
    target = F.log_softmax((-(dx * dx + dy * dy) / (2 * 1.5 * 1.5)).flatten(2), 2)
    maps_loss = (target.exp() * (target - F.log_softmax(maps.flatten(2), 2))).sum(2).mean()
    cell_x = place[:, :, 0].round().clamp(0, width - 1)
    cell_y = place[:, :, 1].round().clamp(0, height - 1)
    index = (cell_y * width + cell_x).to(torch.int64).view(-1, count, 1, 1).expand(-1, -1, 2, 1)
    found = offsets.view(-1, count, 2, height * width).gather(3, index).squeeze(3)
    wanted = torch.stack((place[:, :, 0] - cell_x, place[:, :, 1] - cell_y), 2)
    return maps_loss + F.l1_loss(found, wanted)


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class ClassifierNet(nn.Module):
    """The residual network of 18 layers on grey pictures; names as torchvision's resnet18."""

    def __init__(self, channels, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(1, channels, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        inputs = channels
        for i in range(4):
            outputs = channels * 2**i
            blocks = nn.Sequential(BasicBlock(inputs, outputs, 1 if i == 0 else 2), BasicBlock(outputs, outputs, 1))
            setattr(self, f"layer{i + 1}", blocks)
            inputs = outputs
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


class SequenceNet(nn.Module):
    def __init__(self, features, hidden, layers, cell):
        super().__init__()
        self.rnn = (nn.GRU if cell == "gru" else nn.LSTM)(features, hidden, layers, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, window):
        return self.out(self.rnn(window)[0][:, -1])


class WindowCnn(nn.Module):
    def __init__(self, window, features, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(1, channels, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, 2 * channels, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(2 * channels)
        self.fc1 = nn.Linear(2 * channels * (window // 4) * (features // 4), 64)
        self.fc2 = nn.Linear(64, 1)

    def forward(self, window):
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(window))), 2)
        x = F.max_pool2d(F.relu(self.norm2(self.conv2(x))), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(32, width)
        self.second = nn.Linear(width, width)
        self.last = nn.Linear(width, 1)

    def forward(self, x):
        return self.last(F.relu(self.second(F.relu(self.first(x)))))


# name: (model from settings, loss of (outputs, batch))
JOBS = {
    "restoration": (
        lambda s: RestorationNet(s["base_channels"], s["num_blocks"]),
        lambda out, batch: F.l1_loss(out, batch[1]),
    ),
    "locator": (lambda s: LocatorNet(s.get("base_channels", 40)), lambda out, batch: locator_loss(*out, batch[1])),
    "classifier": (
        lambda s: ClassifierNet(s.get("base_channels", 64), s["num_classes"]),
        lambda out, batch: F.cross_entropy(out, batch[1]),
    ),
    "sequence": (
        lambda s: SequenceNet(s["num_features"], s["hidden_size"], s["num_layers"], s.get("cell", "lstm")),
        lambda out, batch: F.mse_loss(out, batch[1]),
    ),
    "window_cnn": (
        lambda s: WindowCnn(s["window_size"], s["num_features"], s["base_channels"]),
        lambda out, batch: F.mse_loss(out, batch[1]),
    ),
    "tiny_mlp": (lambda s: Mlp(s.get("hidden_size", 64)), lambda out, batch: F.mse_loss(out, batch[1])),
}
