# SPDX-License-Identifier: Apache-2.0
"""Finds the rank of this process in a data-parallel job."""

import os
import sys

# Set by torchrun, Open MPI, and srun (inside a step).
NAMES = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)


def rank_and_world(rank, world):
    """Returns the given values, or those of torch.distributed if initialised, of the environment,
    or 0 of 1."""
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
    """Returns True if Lightning or accelerate is in use, which give each process its part of a
    DataLoader that has no DistributedSampler."""
    state = getattr(sys.modules.get("accelerate.state"), "PartialState", None)
    # Checked late: both may be imported after the loader was made.
    return (
        "lightning.pytorch" in sys.modules or "pytorch_lightning" in sys.modules or bool(state and state._shared_state)
    )


def shared_seed():
    """Returns the seed that processes sharing an epoch have in common: that of Lightning's
    seed_everything(), or 0."""
    seed = os.environ.get("PL_GLOBAL_SEED", "")
    return int(seed) if seed.isdigit() else 0
