# SPDX-License-Identifier: Apache-2.0
"""The sources of saturate_gpu.Loader beside what NumPy, tarfile and PIL make of the same files."""

from common import LoaderTest, enter, picture

enter()
import io
import tarfile
import unittest

import numpy
import torch
from PIL import Image
from torch.utils.data import Dataset

from saturate_gpu import (
    Arrays,
    ImageFiles,
    ImagePairs,
    Images,
    ImageTable,
    Loader,
    LoaderError,
    PythonDataset,
    TarShards,
    Windows,
    transforms as T,
)


class Squares(Dataset):
    classes = ["even", "odd"]

    def __len__(self):
        return 17

    def __getitem__(self, index):
        if index == 99:
            raise KeyError
        return torch.tensor([float(index * index)]), index % 2


class NoSharedMemory(Squares):
    def __getitem__(self, i):  # as PyTorch raises it where a batch is put into /dev/shm
        raise RuntimeError(
            "unable to allocate shared memory(shm) for file </torch_1_2_0>: No space left on device (28)"
        )


class Fails(Squares):
    def __getitem__(self, i):
        raise RuntimeError("the data set's own")


class SourcesTest(LoaderTest):
    def test_pairs_are_cropped_alike(self):
        for side in ("input", "target"):
            (self.folder / side).mkdir()
            for i in range(6):
                Image.fromarray(picture(i)).save(self.folder / side / f"{i}.png")
        with Loader(
            ImagePairs(self.folder), 3, transforms=[T.RandomCrop(12), T.HorizontalFlip(), T.VerticalFlip()]
        ) as loader:
            for _ in range(3):
                for inputs, targets in loader:
                    self.assertEqual(inputs.shape, (3, 3, 12, 12))
                    self.assertTrue(torch.equal(inputs, targets))

    def test_images_alone_and_with_numbers(self):
        (self.folder / "a").mkdir()
        for i in range(4):
            Image.fromarray(picture(i)).save(self.folder / "a" / f"{i}.png")
        (self.folder / "labels.csv").write_text("file,x,y\n" + "".join(f"a/{i}.png,{i},{i * 2}\n" for i in range(4)))
        with (
            Loader(Images(self.folder), 4, dtype="uint8") as alone,
            Loader(ImageTable(self.folder), 4, dtype="uint8") as table,
        ):
            images, (same, numbers) = next(iter(alone)), next(iter(table))
            self.assertTrue(torch.equal(images, same))
            self.assertEqual(numbers.tolist(), [[i, i * 2] for i in range(4)])

    def test_files_with_labels(self):
        paths = [self.folder / f"{i}.png" for i in range(5)]
        for i, path in enumerate(paths):
            Image.fromarray(picture(i)).save(path)
        with Loader(ImageFiles(paths[::-1], [9, 8, 7, 6, 5], ["no", "names"]), 5, dtype="uint8") as loader:
            images, labels = next(iter(loader))
            self.assertEqual(labels.tolist(), [9, 8, 7, 6, 5])
            self.assertTrue(numpy.array_equal(images[4].permute(1, 2, 0).numpy(), picture(0)))
        paths[2].unlink()
        with Loader(ImageFiles(paths), 5) as loader:
            self.assertEqual(next(iter(loader)).shape, (5, 3, 30, 40))
            self.assertEqual([name for name, _ in loader.skipped], [str(paths[2])])
        with self.assertRaisesRegex(ValueError, "1 labels for 5 paths"):
            ImageFiles(paths, [1])

    def test_tar_shards(self):
        for shard in range(2):
            with tarfile.open(self.folder / f"{shard}.tar", "w") as tar:
                for i in range(shard * 5, shard * 5 + 5):
                    image = io.BytesIO()
                    Image.fromarray(picture(i)).save(image, "png")
                    for name, content in ((f"{i:04}.png", image.getvalue()), (f"{i:04}.cls", str(i).encode())):
                        info = tarfile.TarInfo(name)
                        info.size = len(content)
                        tar.addfile(info, io.BytesIO(content))
        size = [T.Resize((30, 40))]
        for paths in (self.folder, self.folder / "*.tar", [self.folder / "0.tar", self.folder / "1.tar"]):
            with Loader(TarShards(paths), 10, transforms=size, dtype="uint8") as loader:
                images, labels = next(iter(loader))
                self.assertEqual(labels.tolist(), list(range(10)))
                self.assertTrue(numpy.array_equal(images[7].permute(1, 2, 0).numpy(), picture(7)))
        with self.assertRaisesRegex(ValueError, "needs a transform that sets a size"):
            Loader(TarShards(self.folder), 2)

    def test_arrays(self):
        x, y = numpy.random.default_rng(0).standard_normal((11, 3, 2)).astype("float32"), numpy.arange(11)
        numpy.savez(self.folder / "both.npz", x=x, y=y)
        with Loader(Arrays(self.folder / "both.npz"), 4, shuffle=True, tells_samples=True) as loader:
            for some_x, some_y, samples in loader:
                self.assertTrue(numpy.array_equal(some_x.numpy(), x[samples.numpy()]))
                self.assertTrue(numpy.array_equal(some_y.numpy(), y[samples.numpy()]))
        with self.assertRaisesRegex(ValueError, "takes no transforms"):
            Loader(Arrays(self.folder / "both.npz"), 4, transforms=[T.Resize((2, 2))])
        with self.assertRaisesRegex(LoaderError, "nothing.npy"):
            Loader(Arrays(self.folder / "nothing.npy"), 4)

    def test_windows_of_a_table(self):
        table = numpy.random.default_rng(0).standard_normal((100, 4)).astype("float32")
        numpy.save(self.folder / "table.npy", table)
        how = dict(path=self.folder / "table.npy", length=6, normalise=False)
        with Loader(Windows(**how, horizon=0, validation_percent=0), 16, shuffle=True, tells_samples=True) as loader:
            self.assertEqual(loader.samples, 95)
            for windows, starts in loader:
                for window, start in zip(windows, starts.tolist()):
                    self.assertTrue(numpy.array_equal(window.numpy(), table[start : start + 6]))
        with Loader(Windows(**how, horizon=2, target="1"), 8, tells_samples=True) as loader:
            windows, targets, starts = next(iter(loader))
            self.assertEqual(targets.flatten().tolist(), [table[start + 7, 1] for start in starts.tolist()])
        with Loader(Windows(**how, part="validation"), 4) as loader:
            self.assertTrue(numpy.array_equal(next(iter(loader))[0][0].numpy(), table[80:86]))

    def test_a_python_data_set_is_the_fall_back(self):
        orders = []
        for workers in (0, 2):
            with Loader(PythonDataset(Squares()), 4, shuffle=True, seed=2, workers=workers) as loader:
                self.assertEqual((len(loader), loader.classes), (5, ["even", "odd"]))
                self.assertIn("own Python", loader.notes[0])
                epochs = [
                    [(squares.flatten().tolist(), labels.tolist()) for squares, labels in loader] for _ in range(2)
                ]
                passing = iter(loader)
                next(passing)
                loader.load_state_dict(loader.state_dict())
                rest = [squares.flatten().tolist() for squares, _ in loader]
                loader.set_epoch(2)
                self.assertEqual(rest, [squares.flatten().tolist() for squares, _ in loader][1:])
                orders.append(epochs)
        self.assertEqual(orders[0], orders[1])
        for epoch in orders[0]:
            self.assertEqual(sorted(sum((squares for squares, _ in epoch), [])), [i * i for i in range(17)])
        self.assertNotEqual(orders[0][0], orders[0][1])
        with self.assertRaisesRegex(ValueError, "transforms cannot be used with"):
            Loader(PythonDataset(Squares()), 4, transforms=[T.Resize((2, 2))])
        with self.assertRaisesRegex(LoaderError, r"/dev/shm is full \(\d+ MiB\).*workers=0"):
            list(Loader(PythonDataset(NoSharedMemory()), 4, workers=0))
        with self.assertRaisesRegex(RuntimeError, "the data set's own"):
            list(Loader(PythonDataset(Fails()), 4, workers=0))


if __name__ == "__main__":
    unittest.main()
