# SPDX-License-Identifier: Apache-2.0
"""saturate_gpu.Loader: batches, order, state, memory that is shared with the loader process, and how it ends."""

from common import LoaderTest, enter, picture, run_script

enter()
import gc
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import unittest
import unittest.mock

import numpy
import torch

from saturate_gpu import Arrays, ImageFolder, Images, Loader, LoaderError, LoaderProcessDied, native, transforms as T


def whole(loader):
    """All batches of a pass as copies."""
    return [tuple(part.clone() for part in batch) for batch in loader]


def same(a, b):
    return len(a) == len(b) and all(torch.equal(x, y) for one, other in zip(a, b) for x, y in zip(one, other))


RANDOM = [
    T.RandomResizedCrop(16),
    T.HorizontalFlip(),
    T.ColorJitter(0.3, 0.3, 0.3, 0.1),
    T.Normalize([0.5] * 3, [0.25] * 3),
]


class BatchesTest(LoaderTest):
    def test_pixels_and_labels_are_those_of_the_files(self):
        root = self.images(10)
        with Loader(ImageFolder(root), batch_size=4, dtype="uint8", tells_samples=True) as loader:
            self.assertEqual((len(loader), loader.samples, loader.classes), (3, 10, ["class0", "class1", "class2"]))
            names, seen = sorted(root.glob("*/*")), []
            self.assertEqual(repr(loader), "<Loader of ImageFolder: 10 samples, 3 batches of 4>")
            for images, labels, samples in loader:
                self.assertEqual((images.dtype, labels.dtype), (torch.uint8, torch.int64))
                for image, label, sample in zip(images, labels, samples.tolist()):
                    name = names[sample]
                    self.assertEqual(name.parent.name, f"class{label}")
                    self.assertTrue(numpy.array_equal(image.permute(1, 2, 0).numpy(), picture(int(name.stem))))
                    seen.append(sample)
            self.assertEqual(seen, list(range(10)))

    def test_batches_are_the_same_for_any_number_of_workers(self):
        root, passes = self.images(40), []
        for workers in (0, 1, 3, None):
            with Loader(
                ImageFolder(root), 7, shuffle=True, seed=5, transforms=RANDOM, workers=workers, tells_samples=True
            ) as loader:
                passes.append(whole(loader) + whole(loader))
        for other in passes[1:]:
            self.assertTrue(same(passes[0], other))
        first, second = passes[0][:6], passes[0][6:]
        self.assertFalse(same(first, second))  # another epoch, another order
        for one in (first, second):
            self.assertEqual(sorted(sample for batch in one for sample in batch[2].tolist()), list(range(40)))

    def test_channels_last_and_bfloat16(self):
        root = self.images(6)
        with (
            Loader(ImageFolder(root), 6, channels_last=True) as a,
            Loader(ImageFolder(root), 6, dtype="bfloat16") as b,
            Loader(ImageFolder(root), 6) as c,
        ):
            (last, _), (half, _), (plain, _) = next(iter(a)), next(iter(b)), next(iter(c))
            self.assertTrue(last.is_contiguous(memory_format=torch.channels_last))
            self.assertTrue(torch.equal(last, plain))
            self.assertEqual(half.dtype, torch.bfloat16)
            self.assertTrue(torch.equal(half, plain.bfloat16()))

    def test_ranks_share_an_epoch(self):
        root, seen = self.images(23), []
        for rank in range(3):
            with Loader(ImageFolder(root), 4, shuffle=True, rank=rank, world=3, tells_samples=True) as loader:
                mine = [sample for _, _, samples in loader for sample in samples.tolist()]
                self.assertEqual(len(mine), 8)
                seen += mine
        self.assertEqual(sorted(set(seen)), list(range(23)))

    def test_rank_and_world_come_from_the_environment(self):
        ran = run_script(
            "import sys, torch\nfrom saturate_gpu import ImageFolder, Loader\n"
            "print(Loader(ImageFolder(sys.argv[1]), 2).state_dict()['rank'])",
            self.images(8),
            env={**os.environ, "RANK": "2", "WORLD_SIZE": "4"},
        )
        self.assertEqual((ran.stdout, ran.stderr), ("2\n", ""))

    def test_two_ranks_train_on_halves(self):
        """DistributedDataParallel over gloo, with a loader that shuffles and a number of samples that does not divide."""
        script = (
            "import json, os, sys, torch\nimport torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel\n"
            "from saturate_gpu import ImageFolder, Loader, transforms as T\ntorch.set_num_threads(1)\n"
            "dist.init_process_group('gloo', init_method='file://' + sys.argv[2], rank=int(sys.argv[3]), world_size=2)\n"
            "loader = Loader(ImageFolder(sys.argv[1]), 3, shuffle=True, seed=2, transforms=[T.Resize((8, 8))], tells_samples=True)\n"
            "model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 3)))\n"
            "optimizer, seen = torch.optim.SGD(model.parameters(), 0.1), []\n"
            "for epoch in range(2):\n    for images, labels, samples in loader:\n        optimizer.zero_grad()\n"
            "        torch.nn.functional.cross_entropy(model(images), labels).backward()\n        optimizer.step()\n"
            "        seen += samples.tolist() if epoch == 0 else []\n"
            "print(json.dumps([seen, sum(p.sum().item() for p in model.parameters())]))\ndist.destroy_process_group()\n"
        )
        root = self.images(17)
        ranks = [
            subprocess.Popen(
                [sys.executable, "-B", "-c", script, root, self.folder / "meet", str(rank)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(2)
        ]
        said = [rank.communicate(timeout=120) for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0, 0], said)
        (first, one), (second, other) = (json.loads(out) for out, _ in said)
        self.assertEqual((len(first), len(second), set(first) | set(second)), (9, 9, set(range(17))))
        self.assertEqual(one, other)  # gradients were averaged at every step

    def test_ranks_that_begin_after_the_loader_was_made(self):
        with (
            Loader(ImageFolder(self.images(20)), 4, tells_samples=True) as loader,
            Loader(ImageFolder(self.images(20)), 4, rank=0, world=1) as given,
        ):
            self.assertEqual(len(loader), 5)
            with unittest.mock.patch("saturate_gpu.loader.found", return_value=(1, 2)):
                self.assertEqual((len(loader), len(given)), (3, 5))
                self.assertEqual([batch[2].tolist() for batch in loader], [[1, 3, 5, 7], [9, 11, 13, 15], [17, 19]])
            self.assertEqual(len(loader), 3)  # after destroy_process_group()

    def test_weights_and_subsets(self):
        root = self.images(20)
        weights = [0.0] * 20
        weights[3] = weights[11] = 1.0
        with Loader(ImageFolder(root), 5, weights=weights, tells_samples=True) as loader:
            self.assertEqual({sample for _, _, samples in loader for sample in samples.tolist()}, {3, 11})
        with Loader(ImageFolder(root), 5, subset=[19, 0, 4]) as part, Loader(ImageFolder(root), 20) as all_of_it:
            (images, labels), (every, labels_of_all) = next(iter(part)), next(iter(all_of_it))
            self.assertTrue(torch.equal(images, every[[19, 0, 4]]))
            self.assertTrue(torch.equal(labels, labels_of_all[[19, 0, 4]]))

    def test_a_cache_changes_nothing(self):
        root = self.images(12, ending=".jpg")
        settings = dict(batch_size=5, shuffle=True, transforms=RANDOM)
        with Loader(ImageFolder(root), **settings, decode="exact") as plain:
            expected = whole(plain) + whole(plain)
        for cache in ("memory", "disk"):
            with Loader(
                ImageFolder(root), **settings, decode="exact", cache=cache, cache_folder=self.folder / "cache"
            ) as loader:
                self.assertTrue(same(whole(loader) + whole(loader), expected), cache)
                self.assertGreater(loader.stats()["cache_hits"], 0)

    def test_without_pytorch_batches_are_numpy_arrays(self):
        ran = run_script(
            "import sys\nfrom saturate_gpu import ImageFolder, Loader\n"
            "for images, labels in Loader(ImageFolder(sys.argv[1]), 4): pass\n"
            "print(type(images).__module__, images.shape, labels.dtype, 'torch' in sys.modules)",
            self.images(8),
        )
        self.assertEqual((ran.stdout, ran.stderr), ("numpy (4, 3, 30, 40) int64 False\n", ""))


class MemoryTest(LoaderTest):
    def test_batches_that_are_kept_do_not_change(self):
        root = self.images(60)
        with Loader(ImageFolder(root), 4, transforms=RANDOM) as loader:
            slab = loader._batches._slab_bytes
        for memory in (None, 10 * slab, 4 * slab, 3 * slab, 2 * slab):  # plenty; or so little that some are copied
            with Loader(ImageFolder(root), 4, shuffle=True, transforms=RANDOM, memory=memory) as loader:
                kept, copies = [], []
                for _ in range(3):
                    for batch in loader:
                        kept.append(batch)
                        copies.append(tuple(part.clone() for part in batch))
                self.assertTrue(same(kept, copies))

    def test_a_view_keeps_its_batch(self):
        with Loader(ImageFolder(self.images(60)), 4) as loader:
            views = [images[1, 2] for images, _ in loader]
            copies = [view.clone() for view in views]
            for _ in range(2):
                for _ in loader:
                    pass
            self.assertTrue(all(map(torch.equal, views, copies)))
            arrays = [images.numpy()[0] for images, _ in loader]
            copies = [array.copy() for array in arrays]
            for _ in loader:
                pass
            self.assertTrue(all(map(numpy.array_equal, arrays, copies)))

    def test_more_batches_are_kept_than_files_may_be_open(self):
        script = (
            "import resource, sys, torch\nfrom saturate_gpu import ImageFolder, Loader\n"
            "resource.setrlimit(resource.RLIMIT_NOFILE, (96, 96))\n"
            "first, second = Loader(ImageFolder(sys.argv[1]), 1), Loader(ImageFolder(sys.argv[1]), 1)\n"
            "kept, other = list(first), list(second)\n"
            "print(len(kept), all(torch.equal(a, b) for one, two in zip(kept, other) for a, b in zip(one, two)))"
        )
        ran = run_script(script, self.images(120))
        self.assertEqual((ran.stdout, ran.stderr), ("120 True\n", ""))

    def test_no_file_may_be_opened_any_more(self):
        script = (
            "import os, resource, sys, torch\nfrom saturate_gpu import ImageFolder, Loader, LoaderError\n"
            "loader = Loader(ImageFolder(sys.argv[1]), 4)\n"
            "before, most = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
            "while True:\n    last = os.dup(0)\n    if last > 40: break\n"
            "resource.setrlimit(resource.RLIMIT_NOFILE, (last + 1, most))\n"
            "try: next(iter(loader))\nexcept LoaderError as problem: print(problem)\n"
            "resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))\nprint(len(list(loader)))"
        )
        ran = run_script(script, self.images(20))
        self.assertEqual(
            (ran.stdout, ran.stderr), ("this process has too many open files (ulimit -n) to map another batch\n5\n", "")
        )

    def test_a_batch_of_one_field_is_kept_too(self):
        root = self.images(60)
        for as_ in ("torch", "numpy"):
            for part in (lambda images: images, lambda images: images[1:3, 2].T if as_ == "numpy" else images[1:3, 2]):
                with Loader(Images(root), 4, as_=as_) as loader:
                    kept = [part(images) for images in loader]
                    copies = [numpy.asarray(one).copy() for one in kept]
                    for _ in range(3):
                        for _ in loader:
                            pass
                    self.assertTrue(all(numpy.array_equal(one, copy) for one, copy in zip(kept, copies)))
                    del kept
                    slabs = len(loader._batches._slabs)
                    for _ in range(3):
                        for _ in loader:
                            pass
                    self.assertLess(len(loader._batches._slabs), slabs + 30)  # of 45 batches

    def test_slabs_go_round(self):
        with Loader(ImageFolder(self.images(60)), 4, workers=2) as loader:
            for _ in range(5):
                for _ in loader:
                    pass
            self.assertLess(len(loader._batches._slabs), 40)  # 75 batches; how many depends on who is faster
            files = len(os.listdir("/proc/self/fd"))
            for _ in range(5):
                for _ in loader:
                    pass
            self.assertLess(len(os.listdir("/proc/self/fd")), files + 30)  # of 75 more

    def test_what_a_forked_child_sees_does_not_change(self):
        with Loader(ImageFolder(self.images(60)), 4, shuffle=True, transforms=RANDOM) as loader:
            passing = iter(loader)
            batch = next(passing)
            copy, (to_child, parent_end), (child_end, to_parent) = batch[0].clone(), os.pipe(), os.pipe()
            child = os.fork()
            if child == 0:
                os.read(to_child, 1)  # the parent is through with its pass
                os.write(to_parent, b"=" if torch.equal(batch[0], copy) else b"!")
                os._exit(0)
            del batch
            for _ in passing:
                pass
            for _ in loader:
                pass
            os.write(parent_end, b".")
            self.assertEqual(os.read(child_end, 1), b"=")
            os.waitpid(child, 0)
            for file in (to_child, parent_end, child_end, to_parent):
                os.close(file)

    def test_a_forked_child_has_a_process_of_its_own(self):
        with Loader(ImageFolder(self.images(20)), 4, shuffle=True) as loader:
            first = whole(loader)
            passing = iter(loader)
            before = next(passing)[0].clone()
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    loader.set_epoch(0)
                    status = 0 if same(whole(loader), first) else 2
                finally:
                    loader.close()
                    os._exit(status)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            rest = list(passing)
            self.assertEqual(len(rest), len(loader) - 1)
            loader.set_epoch(1)
            self.assertTrue(torch.equal(next(iter(loader))[0], before))


class FakePinned:
    """Page-locking without a GPU: a copy is under way until `done`."""

    def __init__(self, torch):
        self.locked, self.done = set(), False

    def lock(self, tensor):
        self.locked.add(tensor.data_ptr())

    def unlock(self, address):
        self.locked.remove(address)

    def mark(self):
        return lambda: self.done


class PinnedTest(LoaderTest):
    def test_memory_is_free_again_when_its_copy_is_done(self):
        with unittest.mock.patch.multiple(native, Pinned=FakePinned, wants_pinned=lambda *_: True):
            loader = Loader(ImageFolder(self.images(60)), 4)
            pinned, views = loader._batches._pinned, []
            for images, _ in loader:
                self.assertIn(images.data_ptr(), pinned.locked)
                views.append(images.data_ptr())
            del images
            self.assertEqual(len(set(views)), 15)  # nothing was filled again
            pinned.done = True
            before = len(pinned.locked)
            for _ in range(4):
                for _ in loader:
                    pass
            self.assertLess(len(pinned.locked), before + 30)  # of 60 batches
            loader.close()
            self.assertEqual(pinned.locked, set())


class StateTest(LoaderTest):
    def test_restored_at_any_place_with_other_workers(self):
        root, dice = self.images(30), random.Random(1)
        settings = dict(
            batch_size=4, shuffle=True, seed=9, transforms=[T.RandomCrop(16), T.HorizontalFlip()], tells_samples=True
        )
        with Loader(ImageFolder(root), **settings) as loader:
            batches, states = [], [loader.state_dict()]
            for _ in range(3):
                for batch in loader:
                    batches.append(tuple(part.clone() for part in batch))
                    states.append(loader.state_dict())
            ends = states[-1]
            after = whole(loader)
        self.assertEqual(
            (ends["epoch"], ends["batch"]), (3, 0)
        )  # the last batch is out: what comes next is the next epoch
        with Loader(ImageFolder(root), **settings, workers=2) as other:
            for _ in range(25):
                at = dice.randrange(3) * 8 + dice.randrange(1, 8)  # in mid-epoch
                other.load_state_dict(pickle.loads(pickle.dumps(states[at])))
                rest = whole(other)
                self.assertTrue(same(rest, batches[at : at // 8 * 8 + 8]), at)
            other.load_state_dict(ends)
            self.assertTrue(same(whole(other), after))
            other.load_state_dict({**ends, "epoch": 2, "batch": 8})  # the end of an epoch is the start of the next
            self.assertTrue(same(whole(other), after))

    def test_a_pass_without_a_batch_is_none(self):
        """Lightning makes two at its start, and never asks for the end of one."""
        with Loader(ImageFolder(self.images(12)), 4, shuffle=True, tells_samples=True) as loader:
            order = [[batch[2].tolist() for batch in loader] for _ in range(3)]
            loader.set_epoch(0)
            iter(loader)
            starts = loader._batches._generation
            for expected in order:
                iter(loader)
                passing = iter(loader)
                self.assertEqual([next(passing)[2].tolist() for _ in range(3)], expected)
            self.assertEqual(loader._batches._generation, starts)  # what was read ahead was used
            self.assertIsNone(next(passing, None))
            self.assertIsNone(next(passing, None))

    def test_set_epoch(self):
        with Loader(ImageFolder(self.images(12)), 4, shuffle=True, tells_samples=True) as loader:
            order = [[batch[2].tolist() for batch in loader] for _ in range(3)]
            loader.set_epoch(1)
            self.assertEqual([batch[2].tolist() for batch in loader], order[1])
            self.assertEqual([batch[2].tolist() for batch in loader], order[2])
            loader.set_epoch(2)
            next(iter(loader))
            state = loader.state_dict()
            loader.load_state_dict(state)
            loader.set_epoch(2)  # as training loops do after resuming: the position in this epoch stays
            self.assertEqual([batch[2].tolist() for batch in loader], order[2][1:])

    def test_a_broken_off_pass_is_over(self):
        with Loader(ImageFolder(self.images(12)), 4, shuffle=True, tells_samples=True) as loader:
            order = [[batch[2].tolist() for batch in loader] for _ in range(2)]
            loader.set_epoch(0)
            for batch in loader:
                break
            self.assertEqual([batch[2].tolist() for batch in loader], order[1])
            first = iter(loader)
            next(first)
            iter(loader)
            with self.assertRaisesRegex(RuntimeError, "another pass"):
                next(first)

    def test_a_state_of_other_data_is_refused(self):
        root = self.images(12)
        with Loader(ImageFolder(root), 4) as a, Loader(ImageFolder(root), 3) as b:
            with self.assertRaisesRegex(ValueError, "saved with batch_size=4, this loader has 3"):
                b.load_state_dict(a.state_dict())

    def test_a_state_brings_its_seed(self):
        root, how = self.images(24), dict(batch_size=4, shuffle=True, transforms=RANDOM, tells_samples=True)
        with Loader(ImageFolder(root), **how, seed=1) as a, Loader(ImageFolder(root), **how, seed=2) as b:
            passing = iter(a)
            next(passing)
            b_passing = iter(b)
            next(b_passing)
            b.load_state_dict(a.state_dict())
            with self.assertRaisesRegex(RuntimeError, "another pass"):
                next(b_passing)
            self.assertTrue(same(whole(b), [tuple(part.clone() for part in batch) for batch in passing]))
            self.assertTrue(same(whole(b), whole(a)))  # the next epoch too


class BadInputTest(LoaderTest):
    def test_broken_files_are_skipped_and_named(self):
        root = self.images(20)
        broken = root / "class1" / "0004.png"
        broken.write_bytes(broken.read_bytes()[:60])
        (root / "class0" / "0006.png").write_bytes(b"")
        with Loader(ImageFolder(root), 5, workers=2) as loader:
            self.assertEqual(len(whole(loader)), 4)
            self.assertEqual(
                sorted(name for name, _ in loader.skipped), [str(root / "class0" / "0006.png"), str(broken)]
            )
            self.assertTrue(all(why for _, why in loader.skipped))
        with Loader(ImageFolder(root), 5, bad_samples_max=1) as loader:
            with self.assertRaises(LoaderError) as caught:
                whole(loader)
            self.assertIn("bad_samples_max", str(caught.exception))
            self.assertIn("named in loader.skipped", str(caught.exception))
            self.assertTrue(caught.exception.place.endswith(".png"))

    def test_an_image_of_another_size_is_named(self):
        root = self.images(8)
        other = root / "class2" / "0005.png"
        from PIL import Image

        Image.fromarray(picture(5, 11, 12)).save(other)
        with Loader(ImageFolder(root), 4) as loader:
            whole(loader)
            self.assertEqual(
                loader.skipped,
                [(str(other), "is 11x12, the others are 40x30: they need a size to be resized or cropped to")],
            )

    def test_wrong_arguments(self):
        root = self.images(4)
        for wrong, what in (
            ({"batch_size": 0}, "batch_size=0"),
            ({"dtype": "int4"}, "dtype='int4'"),
            ({"rank": 1}, "rank and world"),
            ({"rank": 4, "world": 4}, "rank=4"),
            ({"cache": "tape"}, "cache='tape'"),
            ({"decode": "slow"}, "decode='slow'"),
            ({"transforms": [T.Normalize([0], [1]), T.Resize(3)]}, "Resize comes too late"),
            ({"transforms": [T.Resize(3)]}, "different shapes"),
            ({"as_": "jax"}, "as_='jax'"),
        ):
            with self.assertRaisesRegex(ValueError, what):
                Loader(ImageFolder(root), **{"batch_size": 2, **wrong})
        for wrong, what in (
            ({"seed": None}, "seed=None"),
            ({"batch_size": 2.0}, "batch_size=2.0"),
            ({"workers": True}, "workers=True"),
        ):
            with self.assertRaisesRegex(ValueError, what):
                Loader(ImageFolder(root), **{"batch_size": 2, **wrong})
        with self.assertRaisesRegex(ValueError, "is not UTF-8"):
            ImageFolder(os.fsdecode(b"/data/\xff"))
        with Loader(ImageFolder(root), numpy.int64(2), seed=numpy.uint32(3)) as loader:
            self.assertEqual(json.loads(json.dumps(loader.state_dict()))["batch_size"], 2)
        with (
            Loader(ImageFolder(root), 2, memory=10) as loader,
            self.assertRaisesRegex(LoaderError, r"at most 10 B \(memory\)"),
        ):
            next(iter(loader))
        with self.assertRaisesRegex(LoaderError, "nowhere"):
            Loader(ImageFolder(self.folder / "nowhere"), 2)
        with self.assertRaisesRegex(LoaderError, "are not enough for a batch of 9"):
            Loader(ImageFolder(root), 9, drop_last=True)
        for source, what in (
            ([1, 2, 3], "list is not a source.*from_torchvision"),
            (root, "ImageFolder\\('.*images'\\) is one"),
        ):
            with self.assertRaisesRegex(TypeError, what):
                Loader(source, 2)
        for wrong in (T.Resize((8, 8)), torch.nn.Identity()):
            with self.assertRaisesRegex(TypeError, r"transforms=.*: expected a list of saturate_gpu.transforms"):
                Loader(ImageFolder(root), 2, transforms=wrong)

    def test_an_array_that_becomes_shorter(self):
        path = self.folder / "x.npy"
        numpy.save(path, numpy.zeros((4000, 1000)))
        with Loader(Arrays(path), 8) as loader:
            passing = iter(loader)
            next(passing)
            os.truncate(path, 1 << 20)
            with self.assertRaisesRegex(LoaderProcessDied, "SIGBUS.*became shorter"):
                for _ in passing:
                    pass


class EndsTest(LoaderTest):
    def test_signals_for_the_whole_job_are_for_the_script(self):
        """As schedulers send them to every process of a job before they end it."""
        with Loader(ImageFolder(self.images(60)), 4) as loader:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
                passing = iter(loader)
                next(passing)
                os.kill(loader.pid, number)
                self.assertEqual(len(list(passing)), 14)
                loader.stats()  # answered after the signal came

    def test_a_killed_process_is_an_exception(self):
        with Loader(ImageFolder(self.images(200)), 4, shuffle=True) as loader:  # more batches than are there ahead
            expected = whole(loader)
            loader.set_epoch(0)
            passing, pid = iter(loader), loader.pid
            held = next(passing)
            copy = held[0].clone()
            os.kill(pid, signal.SIGKILL)
            with self.assertRaisesRegex(LoaderProcessDied, f"the loader process {pid} was killed by signal 9"):
                for _ in passing:
                    pass
            self.assertTrue(torch.equal(held[0], copy))
            loader.set_epoch(0)
            self.assertTrue(same(whole(loader), expected))  # another process
            self.assertNotEqual(loader.pid, pid)

    def test_the_process_ends_with_the_loader(self):
        root, pids = self.images(20), []
        for how in ("close", "delete", "break", "exception"):
            loader = Loader(ImageFolder(root), 2)
            pids.append(loader.pid)
            try:
                for batch in loader:
                    if how == "exception":
                        raise KeyError("the training's own")
                    if how == "break":
                        break
            except KeyError:
                pass
            if how == "close":
                loader.close()
                with self.assertRaisesRegex(RuntimeError, "another pass|closed"):
                    next(iter(_finished(loader)))
            del loader
        gc.collect()
        for pid in pids:
            self.assertTrue(self.ends(pid))
            self.assertFalse(os.path.exists(f"/proc/{pid}"))  # waited for, no zombie

    def test_the_process_ends_with_its_parent(self):
        for end in ("os._exit(0)", "os.kill(os.getpid(), 9)", "sys.exit(0)"):
            script = (
                "import os, sys, torch\nfrom saturate_gpu import ImageFolder, Loader\n"
                "loader = Loader(ImageFolder(sys.argv[1]), 2)\nfor batch in loader: break\n"
                f"print(loader.pid, flush=True)\n{end}\n"
            )
            ran = run_script(script, self.images(20))
            self.assertTrue(self.ends(int(ran.stdout)), end)

    def test_ctrl_c_reaches_the_program_and_not_the_process(self):
        script = (
            "import os, signal, sys, torch\nfrom saturate_gpu import ImageFolder, Loader\n"
            "loader = Loader(ImageFolder(sys.argv[1]), 2)\ncount = 0\n"
            "try:\n    for batch in loader:\n        count += 1\n        os.killpg(0, signal.SIGINT)\n"
            "except KeyboardInterrupt:\n    print('interrupted', loader.state_dict()['batch'] == count)\n"
            "print(len(list(loader)))\n"
        )
        ran = run_script(script, self.images(20), start_new_session=True)
        self.assertEqual((ran.stdout, ran.stderr), ("interrupted True\n10\n", ""))

    def test_two_loaders_at_once(self):
        root = self.images(20)
        with (
            Loader(ImageFolder(root), 4, shuffle=True, seed=3) as a,
            Loader(ImageFolder(root), 4, shuffle=True, seed=3) as b,
        ):
            for one, other in zip(a, b):
                self.assertTrue(torch.equal(one[0], other[0]))

    def test_spawned_processes_get_a_loader(self):
        with Loader(ImageFolder(self.images(12)), 4, shuffle=True) as loader:
            next(iter(loader))
            copy = pickle.loads(pickle.dumps(loader))
            with copy:
                self.assertNotEqual(copy.pid, loader.pid)
                self.assertEqual(copy.state_dict(), loader.state_dict())
                self.assertEqual(copy.state_dict()["batch"], 1)
                self.assertEqual(
                    len(list(copy)), 3
                )  # the pass of the other loader goes on there; this one begins the next

    def test_the_verb_is_not_for_people(self):
        ran = subprocess.run(
            [os.environ["SATURATE"], "loader-process", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.assertEqual((ran.returncode, ran.stdout), (2, ""))
        self.assertIn("saturate_gpu.Loader", ran.stderr)


def _finished(loader):
    passing = iter(loader)
    loader.close()
    return passing


if __name__ == "__main__":
    unittest.main()
