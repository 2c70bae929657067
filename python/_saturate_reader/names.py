# SPDX-License-Identifier: Apache-2.0
"""Names in PyTorch and related libraries with a meaning for us, one table per meaning."""

FUSED = {"Adam", "AdamW", "SGD", "Adagrad"}
OPTIMIZERS = FUSED | {"RMSprop", "Adadelta", "Adamax", "NAdam", "RAdam", "Rprop", "ASGD", "LBFGS", "SparseAdam", "Adafactor", "Muon"}
# Optimizer classes outside torch.optim, known by their module.
OTHER_OPTIMIZERS = {
    "transformers.AdamW", "transformers.Adafactor", "transformers.optimization.AdamW", "apex.optimizers.FusedAdam",
    "apex.optimizers.FusedLAMB", "apex.optimizers.FusedSGD", "deepspeed.ops.adam.FusedAdam",
    "deepspeed.ops.adam.DeepSpeedCPUAdam", "bitsandbytes.optim.AdamW8bit", "bitsandbytes.optim.Adam8bit",
    "timm.optim.create_optimizer", "timm.optim.create_optimizer_v2", "lion_pytorch.Lion"}
OPTIMIZERS_ELSEWHERE = {"FusedAdam", "FusedSGD", "FusedLAMB", "Lamb", "LAMB", "Lookahead", "AdaBelief", "Ranger", "Lion", "AdamW8bit", "Adan", "Sophia", "Prodigy", "LARS"}
LOADERS = {
    "torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader", "torch_geometric.loader.DataLoader",
    "torch_geometric.data.DataLoader", "torch_geometric.loader.dataloader.DataLoader", "monai.data.DataLoader",
    "monai.data.ThreadDataLoader", "torchdata.stateful_dataloader.StatefulDataLoader", "dgl.dataloading.GraphDataLoader",
    "dgl.dataloading.DataLoader", "ignite.distributed.auto_dataloader"}
LOADER_POSITIONS = ["dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn", "pin_memory",
                    "drop_last", "timeout", "worker_init_fn"]
OPTIMIZER_POSITIONS = {"Adam": ["params", "lr", "betas", "eps", "weight_decay", "amsgrad"],
                       "AdamW": ["params", "lr", "betas", "eps", "weight_decay", "amsgrad"],
                       "SGD": ["params", "lr", "momentum", "dampening", "weight_decay", "nesterov"]}
LOOKAHEAD = {"tqdm", "trange", "iter", "list", "sorted", "reversed", "track", "progress_bar", "prefetch", "islice", "cycle",
             "MpDeviceLoader", "alive_it", "repeat_dataloader", "BackgroundGenerator", "as_numpy_iterator", "ProgressBar"}
# Calls that return their first argument, as far as matters here.
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
# Calls that fill a class from the command line, and the argument that is the class.
FILLS_CLASS = {"tyro.cli": "f", "simple_parsing.parse": "config_class", "datargs.parse": "cls"}
PARSES_CLASS = {"argparse_dataclass.ArgumentParser"}  # parse_args() gives an object of the class that it is made with
TARGETS = ("_target_", "class", "cls", "target")  # keys that name a class
READS_JSON = {"json.load", "json.loads"}
# Calls that scripts often put behind a setting: `if args.amp:`
SWITCHED = {"torch.autocast": "autocast", "torch.cuda.amp.autocast": "autocast", "torch.amp.autocast": "autocast",
            "torch.cuda.amp.autocast_mode.autocast": "autocast", "torch.cuda.amp.GradScaler": "scaler", "torch.amp.GradScaler": "scaler",
            "torch.cuda.amp.grad_scaler.GradScaler": "scaler", "torch.compile": "compile"}
CONFIG_NODES = {"yacs.config.CfgNode", "fvcore.common.config.CfgNode", "detectron2.config.CfgNode", "ml_collections.ConfigDict",
                "easydict.EasyDict", "detectron2.config.get_cfg"}
PARSE_CALLS = {"parse_args", "parse_known_args", "parse_intermixed_args"}
DICT_METHODS = {"items", "keys", "values", "get", "update", "pop", "copy", "setdefault", "clone", "freeze", "defrost",
                "merge_from_file", "merge_from_list", "merge_from_other_cfg", "dump", "toDict", "to_dict", "pretty_text", "merge_from_dict",
                "is_frozen", "register_renamed_key", "register_deprecated_key", "set_new_allowed", "has_key", "__dict__"}
# Fields of transformers' TrainingArguments and Seq2SeqTrainingArguments in all versions.
TRAINING_ARGUMENTS = set("""
output_dir overwrite_output_dir do_train do_eval do_predict eval_strategy evaluation_strategy prediction_loss_only per_device_train_batch_size
per_device_eval_batch_size per_gpu_train_batch_size per_gpu_eval_batch_size gradient_accumulation_steps eval_accumulation_steps eval_delay
torch_empty_cache_steps learning_rate weight_decay adam_beta1 adam_beta2 adam_epsilon max_grad_norm num_train_epochs max_steps lr_scheduler_type
lr_scheduler_kwargs warmup_ratio warmup_steps log_level log_level_replica log_on_each_node logging_dir logging_strategy logging_first_step
logging_steps logging_nan_inf_filter save_strategy save_steps save_total_limit save_safetensors save_on_each_node save_only_model
restore_callback_states_from_checkpoint no_cuda use_cpu use_mps_device seed data_seed jit_mode_eval use_ipex bf16 fp16 fp16_opt_level
half_precision_backend bf16_full_eval fp16_full_eval tf32 local_rank ddp_backend tpu_num_cores tpu_metrics_debug debug dataloader_drop_last eval_steps
dataloader_num_workers dataloader_prefetch_factor past_index run_name disable_tqdm remove_unused_columns label_names load_best_model_at_end
metric_for_best_model greater_is_better ignore_data_skip fsdp fsdp_min_num_params fsdp_config fsdp_transformer_layer_cls_to_wrap accelerator_config
parallelism_config deepspeed label_smoothing_factor optim optim_args adafactor group_by_length length_column_name report_to project trackio_space_id
ddp_find_unused_parameters ddp_bucket_cap_mb ddp_broadcast_buffers dataloader_pin_memory dataloader_persistent_workers skip_memory_metrics
use_legacy_prediction_loop push_to_hub resume_from_checkpoint hub_model_id hub_strategy hub_token hub_private_repo hub_always_push hub_revision
gradient_checkpointing gradient_checkpointing_kwargs include_inputs_for_metrics include_for_metrics eval_do_concat_batches fp16_backend
push_to_hub_model_id push_to_hub_organization push_to_hub_token mp_parameters auto_find_batch_size full_determinism torchdynamo ray_scope ddp_timeout
torch_compile torch_compile_backend torch_compile_mode dispatch_batches split_batches include_tokens_per_second include_num_input_tokens_seen
neftune_noise_alpha optim_target_modules batch_eval_metrics eval_on_start use_liger_kernel liger_kernel_config eval_use_gather_object
average_tokens_across_devices sharded_ddp xpu_backend sortish_sampler predict_with_generate generation_max_length generation_num_beams
generation_config
""".split())
# Calls that only show or save a whole configuration.
SHOWS = {"print", "pprint", "pp", "info", "debug", "warning", "warn", "error", "critical", "log", "write", "writelines", "write_log", "str", "repr",
         "format", "dump", "dumps", "save", "add_text", "add_hparams", "log_hyperparams", "save_hyperparameters", "init", "len", "type", "isinstance",
         "id", "save_yaml", "safe_dump", "join", "freeze", "defrost", "merge_from_list", "hasattr", "set_description", "track", "pformat", "to_yaml",
         "print_args", "print_options", "log_params", "log_param", "log_parameters", "log_parameter", "log_hyperparameters", "resolve", "set_struct", "save_config", "append", "sha1", "md5", "echo", "secho",
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
DRAWN_FROM = {"torch.normal", "torch.bernoulli", "torch.multinomial"}  # may get a tensor with the probabilities
MADE_ON_CPU = RNG | {"torch." + name for name in (
    "zeros", "ones", "empty", "full", "tensor", "arange", "eye", "linspace", "from_numpy", "as_tensor", "Tensor", "FloatTensor",
    "LongTensor", "IntTensor", "BoolTensor", "ByteTensor", "DoubleTensor", "meshgrid", "logspace", "stack_numpy")}
EVALUATES = ("eval", "valid", "val", "test", "infer", "predict", "sample", "generate", "visual", "demo", "snapshot")
