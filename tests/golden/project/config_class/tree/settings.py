from dataclasses import asdict, dataclass

import yaml


@dataclass
class TrainingConfig:
    batch_size: int = 4
    lr: float = 0.01
    num_workers: int = 0


class Manager:
    def __init__(self, path):
        self.config = TrainingConfig()
        self.load(path)

    def load(self, path):
        with open(path) as file:
            values = yaml.safe_load(file)
        for key, value in values.items():
            if hasattr(self.config, key):
                setattr(self.config, key, value)

    def apply_hardware_settings(self):
        import torch
        torch.backends.cudnn.benchmark = True

    def as_dict(self):
        return asdict(self.config)
