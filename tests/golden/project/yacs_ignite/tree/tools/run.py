import argparse
import sys

import torch

sys.path.append('.')
from lib.defaults import _C as cfg
from lib.engine import make_loader, make_optimizer, make_trainer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config_file", default="", type=str)
    parser.add_argument("opts", default=None, nargs=argparse.REMAINDER)
    args = parser.parse_args()
    cfg.merge_from_file(args.config_file)
    cfg.merge_from_list(args.opts)
    cfg.freeze()
    model = torch.nn.Linear(1, 1).cuda()
    trainer = make_trainer(model, make_optimizer(cfg, model), torch.nn.functional.mse_loss, "cuda")
    trainer.run(make_loader(cfg), max_epochs=2)


if __name__ == "__main__":
    main()
