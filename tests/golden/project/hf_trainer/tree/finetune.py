from dataclasses import dataclass, field

import transformers
from transformers import Trainer, TrainingArguments


@dataclass
class ModelArguments:
    model_name: str = field(default="x")
    dropout: float = field(default=0.1)


def main():
    parser = transformers.HfArgumentParser((ModelArguments, TrainingArguments))
    model_args, training_args = parser.parse_args_into_dataclasses()
    model = transformers.AutoModel.from_pretrained(model_args.model_name)
    own = TrainingArguments(output_dir="out", per_device_train_batch_size=4, dataloader_num_workers=0, fp16=False)
    trainer = Trainer(model=model, args=own, train_dataset=[1, 2])
    trainer.train()


if __name__ == "__main__":
    main()
