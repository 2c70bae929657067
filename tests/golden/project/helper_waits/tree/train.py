import logging
import math
import time

import numpy as np
import torch
from torch.utils.data import DataLoader
from tqdm import tqdm

from losses import Dice
from metrics import overlap

LOG_EVERY = 20


def train(model, loader, optimizer, criterion, device, writer):
    history = []
    running = 0.0
    bar = tqdm(loader)
    for i, batch in enumerate(bar):
        start = time.time()
        picture = batch["picture"].to(device, non_blocking=True)
        mask = batch["mask"].to(device, non_blocking=True)
        count = int(picture.shape[0])
        names = batch["index"].tolist()
        output = model(picture)
        loss = criterion(output, mask)
        value = float(loss)
        if math.isnan(value):
            print("nan at", names)
            continue
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        running += loss.detach() * count
        score = overlap(output, mask)
        history.append(score)
        writer.add_scalar("loss", loss, i)
        bar.set_postfix(loss=f"{loss:.3f}")
        if i % LOG_EVERY == 0:
            logging.info("loss %f", loss.item())
            show(output)
        if loss > 100:
            logging.warning("large")
        torch.cuda.synchronize()
        spent = time.time() - start
    return running.item() / len(loader), np.mean(history)


def show(output):
    return output.cpu().numpy()


def validate(model, loader, device):
    model.eval()
    with torch.no_grad():
        for batch in loader:
            print(model(batch["picture"].to(device)).mean().item())


def main(writer):
    device = "cuda"
    model = torch.nn.Conv2d(3, 1, 1).to(device)
    criterion = Dice()
    optimizer = torch.optim.Adam(model.parameters())
    loader = DataLoader([{}] * 8, batch_size=4, num_workers=4, pin_memory=True)
    for epoch in range(10):
        train(model, loader, optimizer, criterion, device, writer)
        validate(model, loader, device)


def unused(model, loader, optimizer):
    for batch in loader:
        loss = model(batch.cuda()).sum()
        loss.backward()
        optimizer.step()
        print(loss.item())


if __name__ == "__main__":
    main(None)
