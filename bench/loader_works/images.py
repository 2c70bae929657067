# SPDX-License-Identifier: Apache-2.0
"""What works A and B share: their images, and the environments of their peers.

Each peer that is not PyTorch has a virtual environment of its own below the cache; one that cannot be
installed is said so in the table and does not end the benchmark.
"""
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PEERS = {"dali": ["nvidia-dali-cuda120", "numpy"], "spdl": ["spdl-io", "spdl-core", "numpy"], "tfdata": ["tensorflow-cpu"],
         "webdataset": ["webdataset"]}


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


def python_of(setting, name):
    """The Python of a peer, or why there is none."""
    folder = setting.cache / f"peer-{pinned(PEERS[name][0]).replace('==', '-')}"
    if not folder.exists():
        part = folder.with_name(folder.name + ".part")
        subprocess.run(["python3", "-m", "venv", "--clear", part], check=True)
        done = subprocess.run([part / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                               "--no-cache-dir", *map(pinned, PEERS[name])], stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            return None, f"cannot be installed: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}"
        os.rename(part, folder)
    return folder / "bin/python", None


def libtorch(setting):
    """The program with LibTorch's own loader, or why there is none."""
    build, name = ROOT / "build/bench-torch", "bench_loader_libtorch"
    for command in (["cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"],
                    ["cmake", "--build", build, "--target", name]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            return None, f"cannot be built (needs libturbojpeg0-dev, libpng-dev): {done.stdout.strip().splitlines()[-1]}"
    return build / name, None


def peers(setting, work):
    """Contenders of a work, the same for A and B but for their name."""
    images, shards = setting.cache / "images" / work / "train", setting.cache / "shards" / work
    here, seconds = setting.works, setting.seconds
    torch_site = subprocess.run([setting.python, "-c", "import torch; print(torch.__path__[0])"], check=True, text=True,
                                stdout=subprocess.PIPE).stdout.strip()
    torch = [setting.python, here / "peer_images_torch.py", work, images, seconds]
    out = [(f"PyTorch DataLoader, {kind}, {workers} workers", [*torch, kind, workers])
           for kind in ("PIL", "torchvision.io") for workers in ((2,) if setting.quick else (1, 2, 3))]
    site = pathlib.Path(torch_site).parent
    others = {"NVIDIA DALI, CPU": ("dali", ["fused", "separate"]), "SPDL": ("spdl", ["torchvision.io", "ffmpeg"]),
              "tf.data": ("tfdata", ["crop", "antialias"])}
    for label, (name, kinds) in others.items():
        python, why = python_of(setting, name)
        for kind in kinds if work == "A" else kinds[:1]:
            with_torch = ["env", f"PYTHONPATH={site}"] if kind == "torchvision.io" else []
            command = [*with_torch, python, here / f"peer_images_{name}.py", work, images, seconds, kind]
            out.append((f"{label}, {kind}", command if python else ["bash", "-c", f"echo {why!r} >&2; exit 1"]))
    program, why = libtorch(setting)
    out.append(("LibTorch's DataLoader, 2 workers", [program, work, images, 2, seconds] if program
                else ["bash", "-c", f"echo {why!r} >&2; exit 1"]))
    python, why = python_of(setting, "webdataset")
    out.append(("WebDataset, torchvision.io, 2 workers",
                ["env", f"PYTHONPATH={site}", python, here / "peer_images_webdataset.py", work, shards, seconds] if python
                else ["bash", "-c", f"echo {why!r} >&2; exit 1"]))
    return out
