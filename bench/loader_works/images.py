# SPDX-License-Identifier: Apache-2.0
"""What works A and B share: their images, and the environments of their peers.

Each peer that is not PyTorch has a virtual environment of its own below the cache; one that cannot be
installed is said so in the table and does not end the benchmark.
"""

import os
import pathlib
import subprocess

from building import build

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PEERS = {
    "dali": ["nvidia-dali-cuda120", "numpy"],
    "spdl": ["spdl-io", "spdl-core", "numpy"],
    "tfdata": ["tensorflow-cpu"],
    "webdataset": ["webdataset"],
}


def pinned(name):
    lines = (ROOT / "tools/pypi.txt").read_text().splitlines()
    return next(line for line in lines if line.startswith(name + "=="))


def make_images(setting):
    folder = setting.cache / "images"
    if not folder.exists():
        part = folder.with_name(folder.name + ".part")
        subprocess.run([setting.python, setting.works / "make_images.py", part], check=True)
        part.rename(folder)
    return folder


def make_shards(setting):
    """The same images as tar shards, for peers that read those."""
    for work in "AB":
        shards, images = setting.cache / "shards" / work, setting.cache / "images" / work / "train"
        if shards.exists():
            continue
        part = shards.with_name(shards.name + ".part")
        subprocess.run([setting.python, setting.works / "make_shards.py", images, part], check=True)
        part.rename(shards)


def read_all(setting, work):
    """Every file once: the kernel may have dropped them from memory, and the first contender alone would wait for the disk."""
    for kind in ("images", "shards"):
        for path in (setting.cache / kind / work).rglob("*"):
            if path.is_file():
                path.read_bytes()


def python_of(setting, name):
    """The Python of a peer, or why there is none."""
    folder = setting.cache / f"peer-{pinned(PEERS[name][0]).replace('==', '-')}"
    if not folder.exists():
        part = folder.with_name(folder.name + ".part")
        subprocess.run(["python3", "-m", "venv", "--clear", part], check=True)
        done = subprocess.run(
            [
                part / "bin/python",
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--no-cache-dir",
                *map(pinned, PEERS[name]),
            ],
            stderr=subprocess.PIPE,
            text=True,
        )
        if done.returncode != 0:
            return None, f"cannot be installed: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}"
        os.rename(part, folder)
    return folder / "bin/python", None


def libtorch(*arguments):
    """The program with LibTorch's own loader, or a command that says why there is none."""
    name = "bench_loader_libtorch"
    try:
        return [build(name, packages=True) / name, *arguments]
    except SystemExit as problem:
        why = f"cannot be built: {str(problem).splitlines()[0]}"
        return ["bash", "-c", f"echo {why!r} >&2; exit 1"]


def seconds(setting):
    """Of one contender: long enough that what was prefetched before the clock started does not count."""
    return 3 if setting.quick else 6


def installed(setting, name, command):
    """Gives the command in the environment of a peer, or one that says why there is none."""

    def make():
        python, why = python_of(setting, name)
        return [*command[:-1], python, *command[-1]] if python else ["bash", "-c", f"echo {why!r} >&2; exit 1"]

    return make


def from_python(setting, work, path, seconds):
    """Our loader as a Python program uses it."""
    folder = setting.cache / "python_package"  # the package alone: python/ also holds the sitecustomize of `run`
    folder.mkdir(exist_ok=True)
    (folder / "saturate_gpu").unlink(missing_ok=True)
    (folder / "saturate_gpu").symlink_to(ROOT / "python/saturate_gpu")
    return [
        "env",
        f"SATURATE={setting.build / 'saturate'}",
        f"PYTHONPATH={folder}",
        setting.python,
        setting.works / "python_loader.py",
        work,
        path,
        seconds,
        2,
    ]


def peers(setting, work):
    """Contenders of a work, the same for A and B but for their name; the strongest ones when it must be quick."""
    images, shards, here = setting.cache / "images" / work / "train", setting.cache / "shards" / work, setting.works
    given = [work, images, seconds(setting)]
    site = subprocess.run(
        [setting.python, "-c", "import pathlib, torch; print(pathlib.Path(torch.__path__[0]).parent)"],
        check=True,
        text=True,
        stdout=subprocess.PIPE,
    ).stdout.strip()
    with_torch = ["env", f"PYTHONPATH={site}"]
    torch, dali = [setting.python, here / "peer_images_torch.py", *given], [here / "peer_images_dali.py", *given]
    out = [
        ("PyTorch DataLoader, torchvision.io, 2 workers", [*torch, "torchvision.io", 2]),
        ("LibTorch's DataLoader, 2 workers", lambda: libtorch(work, images, 2, seconds(setting))),
        ("NVIDIA DALI, CPU, fused", installed(setting, "dali", [[*dali, "fused"]])),
    ]
    if setting.quick:
        return out
    out += [
        (f"PyTorch DataLoader, {kind}, {workers} workers", [*torch, kind, workers])
        for kind, workers in (("torchvision.io", 1), ("torchvision.io", 3), ("PIL", 2), ("PIL", 3))
    ]
    spdl, tfdata = [here / "peer_images_spdl.py", *given], [here / "peer_images_tfdata.py", *given]
    out += [
        ("SPDL, torchvision.io", installed(setting, "spdl", [*with_torch, [*spdl, "torchvision.io"]])),
        ("SPDL, ffmpeg", installed(setting, "spdl", [[*spdl, "ffmpeg"]])),
        ("tf.data, crop", installed(setting, "tfdata", [[*tfdata, "crop"]])),
        (
            "WebDataset, torchvision.io, 2 workers",
            installed(
                setting,
                "webdataset",
                [*with_torch, [here / "peer_images_webdataset.py", work, shards, seconds(setting)]],
            ),
        ),
    ]
    if work == "A":
        out += [
            ("NVIDIA DALI, CPU, separate", installed(setting, "dali", [[*dali, "separate"]])),
            ("tf.data, antialias", installed(setting, "tfdata", [[*tfdata, "antialias"]])),
        ]
    return out
