# SPDX-License-Identifier: Apache-2.0
# torchvision's ImageFolder over JPEG files, the loader left at its defaults: the data set is what takes the time.
# Every file is opened late, as from a slow disk, so that the outcome does not hang on the machine's cores.
import os
import sys
import time

import torch
from PIL import Image
from torch import nn
from torchvision import datasets, transforms


def slow_open(path):
    time.sleep(0.004)
    with Image.open(path) as image:
        return image.convert("RGB")


def write_images(folder):
    for i in range(192):
        os.makedirs(os.path.join(folder, "class%d" % (i % 2)), exist_ok=True)
        Image.new("RGB", (80, 64), (i, 255 - i, 7 * i % 256)).save(os.path.join(folder, "class%d" % (i % 2), "%03d.jpg" % i))


torch.manual_seed(7)
torch.set_num_threads(1)
if not os.path.isdir(sys.argv[1]):
    write_images(sys.argv[1])
data = datasets.ImageFolder(
    sys.argv[1], transforms.Compose([transforms.Resize(32), transforms.CenterCrop(32), transforms.ToTensor()]), loader=slow_open
)
loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(int(sys.argv[2])):
    total = 0.0
    for images, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print("epoch %d loss %.9f" % (epoch, total), flush=True)
