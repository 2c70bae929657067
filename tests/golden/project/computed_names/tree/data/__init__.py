from torch.utils.data import dataloader


class Data:
    def __init__(self, args):
        self.train = dataloader.DataLoader([0] * 10, batch_size=2, num_workers=args.n_threads)
