# SPDX-License-Identifier: Apache-2.0
"""Which process of a data-parallel job this is."""
import os
import sys

# As torchrun, Open MPI and srun (inside a step) name them.
NAMES = (("RANK", "WORLD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"))


def rank_and_world(rank, world):
    """As given; else of torch.distributed where it is initialised; else of the environment; else 0 of 1."""
    if (rank is None) != (world is None):
        raise ValueError("rank and world belong together: give both or none")
    if rank is None:
        rank, world = found()
    if not 0 <= rank < world:
        raise ValueError(f"rank={rank}, world={world}: rank is 0 to world - 1")
    return int(rank), int(world)


def found():
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    for rank, world in NAMES:
        if os.environ.get(rank, "").isdigit() and os.environ.get(world, "").isdigit():
            return int(os.environ[rank]), int(os.environ[world])
    return 0, 1


def are_shared_out():
    """True where a framework is in charge that gives each process its part of a DataLoader without a DistributedSampler."""
    state = getattr(sys.modules.get("accelerate.state"), "PartialState", None)
    # Asked late: both may be imported after the loader was made.
    return "lightning.pytorch" in sys.modules or "pytorch_lightning" in sys.modules or bool(state and state._shared_state)


def shared_seed():
    """Processes that share an epoch need one: Lightning's seed_everything() tells it."""
    seed = os.environ.get("PL_GLOBAL_SEED", "")
    return int(seed) if seed.isdigit() else 0
