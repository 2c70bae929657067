import torch
from torch.utils.data import DataLoader


def endless(loader):
    while True:
        for batch in loader:
            yield batch


class Gan:
    def __init__(self):
        self.g = torch.nn.Linear(1, 1).cuda()
        self.d = torch.nn.Linear(1, 1).cuda()
        self.opt_g = torch.optim.Adam(self.g.parameters())
        self.opt_d = torch.optim.Adam(self.d.parameters())

    def optimize(self, real):
        fake = self.g(real)
        loss_d = self.d(fake.detach()).mean() - self.d(real).mean()
        self.opt_d.zero_grad()
        loss_d.backward()
        self.opt_d.step()
        loss_g = -self.d(fake).mean()
        self.opt_g.zero_grad()
        loss_g.backward()
        self.opt_g.step()
        return {"g": loss_g, "d": loss_d}


def accumulate(model, optimizer, batches, scaler):
    for step in range(100):
        for micro in range(4):
            x = next(batches)
            with torch.autocast("cuda", dtype=torch.float16):
                loss = model(x.cuda()).sum() / 4
            scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        if step % 10 == 0:
            print(loss.item())


def main():
    loader = DataLoader([torch.zeros(1)] * 8, batch_size=2)
    gan = Gan()
    for epoch in range(2):
        for x in loader:
            losses = gan.optimize(x.cuda())
            text = " ".join("%s %.3f" % (k, v.item()) for k, v in losses.items())
            print(text)
    model = torch.nn.Linear(1, 1).cuda()
    accumulate(model, torch.optim.AdamW(model.parameters(), fused=True), endless(loader), torch.amp.GradScaler())
    lbfgs = torch.optim.LBFGS(model.parameters())
    for x in loader:
        def closure():
            lbfgs.zero_grad()
            loss = model(x.cuda()).sum()
            loss.backward()
            return loss
        lbfgs.step(closure)


if __name__ == "__main__":
    main()
