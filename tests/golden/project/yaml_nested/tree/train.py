import argparse

import torch
import yaml

from net import build


def make_loader(data, batch_size, workers=2):
    return torch.utils.data.DataLoader(data, batch_size, True, num_workers=workers, drop_last=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config")
    args = parser.parse_args()
    with open(args.config) as file:
        config = yaml.safe_load(file)
    settings = config["train"]
    loader = make_loader(list(range(100)), settings["batch_size"], workers=settings.get("workers", 1))
    model = build(**config["model"]).cuda()
    optimizer_class = getattr(torch.optim, config["optimizer"]["type"])
    optimizer = optimizer_class(model.parameters(), **config["optimizer"]["args"])
    for group in optimizer.param_groups:
        group["lr"] = config["optimizer"]["lr"]
    use_amp = settings["amp"] == "bf16"
    chosen = {key: value for key, value in config["loss"].items() if key != "name"}
    criterion = torch.nn.MSELoss(**chosen) if config["loss"]["name"] == "mse" else torch.nn.BCELoss()
    step = 0
    while step < 1000:
        for batch in loader:
            with torch.cuda.amp.autocast(enabled=use_amp):
                loss = criterion(model(batch.cuda()), batch.cuda())
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            step += 1
            if step % config["log"]["every"] == 0:
                print(config["log"]["folder"], loss.item())


if __name__ == "__main__":
    main()
