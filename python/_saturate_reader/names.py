# SPDX-License-Identifier: Apache-2.0
"""Names of PyTorch and of libraries around it that mean something to us. One table for each meaning."""

FUSED = {"Adam", "AdamW", "SGD", "Adagrad"}
OPTIMIZERS = FUSED | {"RMSprop", "Adadelta", "Adamax", "NAdam", "RAdam", "Rprop", "ASGD", "LBFGS", "SparseAdam", "Adafactor", "Muon"}
# Classes outside torch.optim that are optimizers by their known module.
OTHER_OPTIMIZERS = {
    "transformers.AdamW", "transformers.Adafactor", "transformers.optimization.AdamW", "apex.optimizers.FusedAdam",
    "apex.optimizers.FusedLAMB", "apex.optimizers.FusedSGD", "deepspeed.ops.adam.FusedAdam",
    "deepspeed.ops.adam.DeepSpeedCPUAdam", "bitsandbytes.optim.AdamW8bit", "bitsandbytes.optim.Adam8bit",
    "timm.optim.create_optimizer", "timm.optim.create_optimizer_v2", "lion_pytorch.Lion"}
LOADERS = {
    "torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader", "torch_geometric.loader.DataLoader",
    "torch_geometric.data.DataLoader", "torch_geometric.loader.dataloader.DataLoader", "monai.data.DataLoader",
    "monai.data.ThreadDataLoader", "torchdata.stateful_dataloader.StatefulDataLoader", "dgl.dataloading.GraphDataLoader",
    "dgl.dataloading.DataLoader"}
LOADER_POSITIONS = ["dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn", "pin_memory",
                    "drop_last", "timeout", "worker_init_fn"]
OPTIMIZER_POSITIONS = {"Adam": ["params", "lr", "betas", "eps", "weight_decay", "amsgrad"],
                       "AdamW": ["params", "lr", "betas", "eps", "weight_decay", "amsgrad"],
                       "SGD": ["params", "lr", "momentum", "dampening", "weight_decay", "nesterov"]}
LOOKAHEAD = {"tqdm", "trange", "iter", "list", "sorted", "reversed", "track", "progress_bar", "prefetch", "islice", "cycle",
             "MpDeviceLoader", "alive_it", "repeat_dataloader", "BackgroundGenerator", "as_numpy_iterator", "ProgressBar"}
# Calls that give back their first argument as far as we care.
SAME = {
    "torch.nn.DataParallel", "torch.nn.parallel.DataParallel", "torch.nn.parallel.DistributedDataParallel",
    "torch.nn.parallel.distributed.DistributedDataParallel", "torch.compile", "torch.jit.script", "copy.deepcopy", "copy.copy",
    "torch.nn.SyncBatchNorm.convert_sync_batchnorm", "apex.parallel.DistributedDataParallel", "tqdm.tqdm",
    "tqdm.auto.tqdm", "tqdm.notebook.tqdm", "tqdm.std.tqdm", "tqdm.rich.tqdm", "rich.progress.track", "builtins.iter", "builtins.list", "builtins.tuple",
    "builtins.dict", "builtins.sorted", "builtins.vars", "builtins.reversed", "builtins.str", "omegaconf.OmegaConf.create", "omegaconf.OmegaConf.to_container",
    "omegaconf.OmegaConf.to_object", "omegaconf.DictConfig", "omegaconf.OmegaConf.structured", "easydict.EasyDict", "argparse.Namespace",
    "types.SimpleNamespace", "munch.Munch", "munch.munchify", "munch.DefaultMunch.fromDict", "dotmap.DotMap", "box.Box", "addict.Dict", "attrdict.AttrDict",
    "ml_collections.ConfigDict", "collections.OrderedDict", "dotwiz.DotWiz", "torch.nn.utils.convert_sync_batchnorm",
    "dataclasses.asdict", "itertools.cycle", "itertools.islice", "itertools.chain", "torch.unwrap", "transformers.set_seed",
    "mmcv.ConfigDict", "mmengine.ConfigDict", "more_itertools.peekable"}
SAME_METHODS = {"to", "cuda", "train", "eval", "half", "float", "double", "bfloat16", "apply", "requires_grad_", "cpu", "clone",
                "copy", "share_memory", "to_empty", "type", "toDict", "to_dict", "defrost", "freeze", "unwrap_model"}
# Calls that read a configuration file.
READS_CONFIG = {
    "yaml.safe_load", "yaml.load", "yaml.full_load", "yaml.unsafe_load", "yaml.safe_load_all", "yaml.load_all", "yaml.full_load_all", "json.load", "json.loads",
    "toml.load", "toml.loads", "tomllib.load", "tomllib.loads", "tomli.load", "tomli.loads", "pytoml.load", "rtoml.load", "omegaconf.OmegaConf.load",
    "hydra.compose", "ruamel.yaml.safe_load", "ruamel.yaml.load", "ruamel.yaml.round_trip_load", "munch.Munch.fromYAML", "munch.Munch.fromDict",
    "mmcv.Config.fromfile", "mmengine.Config.fromfile", "mmengine.config.Config.fromfile", "detectron2.config.get_cfg", "anyconfig.load", "commentjson.load", "json5.load",
    "hyperpyyaml.load_hyperpyyaml", "pyhocon.ConfigFactory.parse_file", "ml_collections.ConfigDict", "yacs.config.CfgNode", "fvcore.common.config.CfgNode",
    "detectron2.config.CfgNode", "yacs.config.CfgNode.load_cfg"}
CONFIG_NODES = {"yacs.config.CfgNode", "fvcore.common.config.CfgNode", "detectron2.config.CfgNode", "ml_collections.ConfigDict",
                "easydict.EasyDict", "detectron2.config.get_cfg"}
PARSE_CALLS = {"parse_args", "parse_known_args", "parse_intermixed_args"}
DICT_METHODS = {"items", "keys", "values", "get", "update", "pop", "copy", "setdefault", "clone", "freeze", "defrost",
                "merge_from_file", "merge_from_list", "merge_from_other_cfg", "dump", "toDict", "to_dict", "pretty_text", "merge_from_dict",
                "is_frozen", "register_renamed_key", "register_deprecated_key", "set_new_allowed", "has_key", "__dict__"}
# What only shows or keeps a whole configuration.
SHOWS = {"print", "pprint", "pp", "info", "debug", "warning", "warn", "error", "critical", "log", "write", "writelines", "write_log", "str", "repr",
         "format", "dump", "dumps", "save", "add_text", "add_hparams", "log_hyperparams", "save_hyperparameters", "init", "len", "type", "isinstance",
         "id", "save_yaml", "safe_dump", "join", "freeze", "defrost", "merge_from_list", "hasattr", "set_description", "track", "pformat", "to_yaml",
         "print_args", "print_options", "log_params", "log_param", "resolve", "set_struct", "save_config", "append", "sha1", "md5", "echo", "secho",
         "rule", "print_config", "print_config_tree", "makedirs", "exists", "mkdir", "dumps_json", "savetxt", "to_json", "dumper", "config_update"}
TRACKERS = {"wandb.init": "wandb", "mlflow.start_run": "mlflow", "mlflow.set_experiment": "mlflow", "comet_ml.Experiment": "comet",
            "neptune.init": "neptune", "neptune.init_run": "neptune", "clearml.Task.init": "clearml", "swanlab.init": "swanlab",
            "torch.utils.tensorboard.SummaryWriter": "tensorboard", "tensorboardX.SummaryWriter": "tensorboard",
            "torch.utils.tensorboard.writer.SummaryWriter": "tensorboard", "tensorboard_logger.Logger": "tensorboard"}
FRAMEWORKS = {"pytorch_lightning": "lightning", "lightning": "lightning", "transformers": "transformers", "accelerate": "accelerate",
              "ignite": "ignite", "hydra": "hydra", "omegaconf": "omegaconf", "yacs": "yacs", "mmcv": "mmcv", "mmengine": "mmengine",
              "fastai": "fastai", "deepspeed": "deepspeed", "detectron2": "detectron2", "ultralytics": "ultralytics", "torchtitan": "torchtitan",
              "fairseq": "fairseq", "monai": "monai", "torch_geometric": "torch_geometric", "catalyst": "catalyst",
              "composer": "composer", "timm": "timm", "trl": "trl", "peft": "peft", "apex": "apex", "ray": "ray", "horovod": "horovod",
              "colossalai": "colossalai", "nemo": "nemo", "speechbrain": "speechbrain", "espnet": "espnet", "jax": "jax", "tensorflow": "tensorflow"}
SCHEDULERS_TOTAL = {"OneCycleLR": "total_steps", "CyclicLR": "step_size_up"}
RNG = {"torch.rand", "torch.randn", "torch.randint", "torch.randperm", "torch.normal", "torch.bernoulli", "torch.multinomial"}
MADE_ON_CPU = RNG | {"torch." + name for name in (
    "zeros", "ones", "empty", "full", "tensor", "arange", "eye", "linspace", "from_numpy", "as_tensor", "Tensor", "FloatTensor",
    "LongTensor", "IntTensor", "BoolTensor", "ByteTensor", "DoubleTensor", "meshgrid", "logspace", "stack_numpy")}
EVALUATES = ("eval", "valid", "val", "test", "infer", "predict", "sample", "generate", "visual", "demo", "snapshot")
