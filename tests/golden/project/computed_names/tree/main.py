from importlib import import_module

import torch

from data import Data
from options import args
from trainer import Trainer

module = import_module("models." + args.model)
model = module.make(args)
if __name__ == "__main__":
    Trainer(args, model, Data(args)).fit()
