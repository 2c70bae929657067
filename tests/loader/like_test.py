# SPDX-License-Identifier: Apache-2.0
"""Loader.like() and from_torchvision() beside the DataLoader that they stand for: shapes, types and pixels.

Tolerances in grey levels (of 255). Files without a resize: none, the decoder is the same library. With one: PIL rounds to 8 bits after
each of two passes, the loader once at the end or not at all, which is at most one level, and one more where colour jitter or bicubic
overshoot amplify it; the mean stays below a third of a level."""

from common import LoaderTest, enter, make_images, picture

enter()
import pickle
import sys
import types
import unittest
import unittest.mock
import warnings

import torch
from torch.utils.data import (
    DataLoader,
    DistributedSampler,
    RandomSampler,
    Subset,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torchvision import transforms as v1
from torchvision.datasets import DatasetFolder, FakeData, ImageFolder
from torchvision.transforms import v2

from saturate_gpu import Loader, from_torchvision
from saturate_gpu.like import refusal

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def both(*transforms):
    """The same by v1 on PIL images and by v2 on tensors."""
    old = v1.Compose([getattr(v1, name)(**how) for name, how in transforms] + [v1.ToTensor(), v1.Normalize(MEAN, STD)])
    new = v2.Compose(
        [v2.ToImage()]
        + [getattr(v2, name)(**how) for name, how in transforms]
        + [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    )
    return {"v1": old, "v2": new}


class LikeTest(LoaderTest):
    def compare(self, transform, worst, mean, ending=".png", **shape):
        root = self.folder / f"images{ending}{len(list(self.folder.iterdir()))}"
        make_images(root, 12, ending=ending, **shape)
        theirs = DataLoader(ImageFolder(root, transform), 5, shuffle=False, drop_last=False)
        with Loader.like(theirs) as ours:
            self.assertEqual((len(ours), ours.classes), (len(theirs), theirs.dataset.classes))
            for (images, labels), (expected, expected_labels) in zip(ours, theirs):
                self.assertEqual((images.shape, images.dtype), (expected.shape, expected.dtype))
                self.assertTrue(torch.equal(labels, expected_labels))
                scale = 1.0 if images.dtype == torch.uint8 else 255.0
                apart = (images.float() - expected.float()).abs() * scale * (0.224 if images.min() < 0 else 1)
                self.assertLessEqual(apart.max().item(), worst)
                self.assertLessEqual(apart.mean().item(), mean)
            self.assertEqual(ours.skipped, [])

    def test_pixels_without_a_resize(self):
        for ending in (".png", ".jpg"):
            for transform in (
                v1.ToTensor(),
                v1.PILToTensor(),
                v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]),
                v1.Compose([v1.CenterCrop(20), v1.ToTensor()]),
            ):
                with self.subTest(f"{transform} {ending}"):
                    self.compare(transform, 0.01, 0.001, ending)

    def test_pixels_with_a_resize(self):
        for name, transforms in {
            "both sides": [("Resize", {"size": (24, 36)})],
            "evaluation": [("Resize", {"size": 26}), ("CenterCrop", {"size": 24})],
            "up": [("Resize", {"size": (70, 90)})],
            "sides, then crop": [("Resize", {"size": (32, 32)}), ("CenterCrop", {"size": 28})],
        }.items():
            for version, transform in both(*transforms).items():
                for ending in (".png", ".jpg"):
                    with self.subTest(f"{name} {version} {ending}"):
                        self.compare(transform, 1.6, 0.45, ending, width=61, height=47)

    def test_random_transforms_have_the_same_distribution(self):
        root = self.images(8, width=64, height=64)
        transform = v1.Compose(
            [v1.RandomResizedCrop(24), v1.RandomHorizontalFlip(), v1.ColorJitter(0.2, 0.2, 0.2), v1.ToTensor()]
        )
        theirs = DataLoader(ImageFolder(root, transform), 8)
        torch.manual_seed(0)
        with Loader.like(theirs) as ours:
            found, expected = [torch.cat([next(iter(loader))[0] for _ in range(60)]) for loader in (ours, theirs)]
        self.assertEqual(found.shape, expected.shape)
        # 480 crops each: means of channels and their spread, about 4 standard errors apart at most
        self.assertLess((found.mean((0, 2, 3)) - expected.mean((0, 2, 3))).abs().max(), 0.04)
        self.assertLess((found.mean((1, 2, 3)).std() - expected.mean((1, 2, 3)).std()).abs(), 0.02)
        self.assertLess((found.std((1, 2, 3)).mean() - expected.std((1, 2, 3)).mean()).abs(), 0.02)

    def test_the_usual_training_recipes_are_taken(self):
        root = self.images(8)
        for transform in (
            v1.Compose(
                [v1.RandomCrop(32, padding=4), v1.RandomHorizontalFlip(), v1.ToTensor(), v1.Normalize(MEAN, STD)]
            ),
            v1.Compose([v1.RandomHorizontalFlip(), v1.Resize((20, 20)), v1.ToTensor()]),
            v1.Compose([v1.Resize(28), v1.RandomCrop(24), v1.RandomVerticalFlip(0.3), v1.ToTensor()]),
            v1.Compose([v1.Grayscale(), v1.Resize([16, 16]), v1.ToTensor(), v1.Normalize([0.5], [0.5])]),
            v2.Compose(
                [
                    v2.RGB(),
                    v2.ToImage(),
                    v2.RandomResizedCrop(size=(20, 24), antialias=True),
                    v2.RandomHorizontalFlip(p=0.5),
                    v2.ToDtype(torch.float32, scale=True),
                    v2.Normalize(MEAN, STD),
                ]
            ),
            v2.Compose(
                [
                    v2.Resize((16, 16), interpolation=v2.InterpolationMode.BICUBIC),
                    v2.ToImage(),
                    v2.ToDtype(torch.bfloat16, scale=True),
                ]
            ),
        ):
            with (
                self.subTest(str(transform)),
                Loader.like(DataLoader(ImageFolder(root, transform), 4, shuffle=True)) as ours,
            ):
                images, _ = next(iter(ours))
                expected, _ = next(iter(DataLoader(ImageFolder(root, transform), 4)))
                self.assertEqual((images.shape, images.dtype), (expected.shape, expected.dtype))

    def test_subsets_and_samplers(self):
        root = self.images(20)
        whole = ImageFolder(root, v1.ToTensor())
        plain = [whole[i][0] for i in range(20)]
        part = Subset(Subset(whole, list(range(19, -1, -2))), [0, 3, 4])
        with Loader.like(DataLoader(part, 3)) as ours:
            images, labels = next(iter(ours))
            self.assertEqual(labels.tolist(), [whole.targets[i] for i in (19, 13, 11)])
            self.assertLess((images - torch.stack([plain[i] for i in (19, 13, 11)])).abs().max(), 1e-4)
        with Loader.like(DataLoader(whole, 5, sampler=SubsetRandomSampler([2, 4, 6])), tells_samples=True) as ours:
            self.assertEqual(sorted(next(iter(ours))[2].tolist()), [0, 1, 2])  # numbers within the subset
            self.assertEqual(len(ours), 1)
        with Loader.like(
            DataLoader(whole, 5, sampler=WeightedRandomSampler([0.0] * 19 + [1.0], 20)), tells_samples=True
        ) as ours:
            self.assertEqual(set(next(iter(ours))[2].tolist()), {19})
        with Loader.like(
            DataLoader(whole, 5, sampler=DistributedSampler(whole, 4, 3, seed=8)), tells_samples=True
        ) as ours:
            state = ours.state_dict()
            self.assertEqual(
                (len(ours), state["rank"], state["world"], state["seed"], state["shuffle"]), (1, 3, 4, 8, True)
            )

    def test_what_is_not_known_is_refused_by_name(self):
        root = self.images(4)
        for transform, name in (
            (v1.RandomRotation(5), "RandomRotation"),
            (v1.Lambda(lambda image: image), "Lambda"),
            (lambda image: image, "<lambda>"),
            (v1.Compose([v1.ToTensor(), v1.RandomErasing()]), "RandomErasing"),
            (v2.RandAugment(), "RandAugment"),
            (v1.Compose([v1.Resize(20), v1.ToTensor()]), "Resize"),
            (v1.Resize((9, 9)), "ToTensor"),
            (v1.Compose([v1.ColorJitter(0.1), v1.RandomResizedCrop(9), v1.ToTensor()]), "RandomResizedCrop"),
            (v1.Compose([v1.RandomCrop(9, padding=2, padding_mode="reflect"), v1.ToTensor()]), "padding_mode"),
            (v1.Compose([v1.Resize((9, 9), v1.InterpolationMode.NEAREST), v1.ToTensor()]), "nearest"),
            (v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32)]), "scale=False"),
        ):
            with self.subTest(name), self.assertRaisesRegex(ValueError, name):
                from_torchvision(ImageFolder(root, transform), 2)

        class Own(ImageFolder):
            def __getitem__(self, index):
                return super().__getitem__(index)[0]

        good = ImageFolder(root, v1.ToTensor())
        for loader, name in (
            (DataLoader(FakeData(8, transform=v1.ToTensor()), 2), "FakeData"),
            (DataLoader(Own(root, v1.ToTensor()), 2), "__getitem__"),
            (DataLoader(good, 2, collate_fn=list), "collate_fn list"),
            (DataLoader(good, None), "without batches"),
            (DataLoader(good, 2, sampler=RandomSampler(good, num_samples=3)), "RandomSampler"),
            (DataLoader(ImageFolder(root, v1.ToTensor(), target_transform=float), 2), "target_transform"),
            (DataLoader(ImageFolder(root, v1.ToTensor(), loader=open), 2), "loader function open"),
        ):
            with self.subTest(name), self.assertRaisesRegex(ValueError, name):
                Loader.like(loader)
        (root / "class0" / "x.bmp").write_bytes(b"BM")
        with self.assertRaisesRegex(ValueError, "x.bmp"):
            from_torchvision(ImageFolder(root, v1.ToTensor()), 2)

    def test_classes_derived_from_known_ones_are_refused(self):
        class Resize(v1.Resize):
            def forward(self, image):
                return super().forward(image).rotate(90)

        class ToTensor(v1.ToTensor):
            def __call__(self, image):
                return super().__call__(image) * 2

        class Compose(v1.Compose):
            def __call__(self, image):
                return super().__call__(image) * 2

        root = self.images(4)
        for transform, name in (
            (v1.Compose([Resize((9, 9)), v1.ToTensor()]), "Resize"),
            (ToTensor(), "ToTensor"),
            (Compose([v1.ToTensor()]), "Compose"),
        ):
            with self.subTest(name), self.assertRaisesRegex(ValueError, f"the transform {name} is not known"):
                from_torchvision(ImageFolder(root, transform), 2)

    def test_what_torchvision_takes_for_all_channels(self):
        for transform in (
            v1.Compose([v1.ToTensor(), v1.Normalize([0.5], [0.25])]),
            torch.nn.Sequential(v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5], [0.25])),
        ):
            self.compare(transform, 0.01, 0.001)

    def test_a_data_set_is_no_loader(self):
        with self.assertRaisesRegex(TypeError, r"not a PyTorch DataLoader; from_torchvision\(\)"):
            Loader.like(ImageFolder(self.images(4), v1.ToTensor()))

    def test_the_seed_is_that_of_the_program(self):
        whole, orders = ImageFolder(self.images(20), v1.ToTensor()), []
        for seed in (1, 2, 1):
            torch.manual_seed(seed)
            with Loader.like(DataLoader(whole, 5, shuffle=True), tells_samples=True) as ours:
                orders.append([batch[2].tolist() for batch in ours])
        self.assertEqual(orders[0], orders[2])
        self.assertNotEqual(orders[0], orders[1])
        generator = torch.Generator().manual_seed(7)
        with Loader.like(DataLoader(whole, 5, shuffle=True, generator=generator)) as ours:
            self.assertEqual(ours.state_dict()["seed"], 7)

    def test_a_sampler_that_is_told_the_epoch(self):
        whole = ImageFolder(self.images(20), v1.ToTensor())
        sampler = DistributedSampler(whole, 2, 0)
        with Loader.like(DataLoader(whole, 5, sampler=sampler), tells_samples=True) as ours:
            orders = [[batch[2].tolist() for batch in ours] for _ in range(3)]
            sampler.set_epoch(1)
            self.assertEqual([batch[2].tolist() for batch in ours], orders[1])
            self.assertEqual([batch[2].tolist() for batch in ours], orders[2])
            ours.load_state_dict({**ours.state_dict(), "epoch": 2, "batch": 1})
            sampler.set_epoch(2)  # the position in this epoch stays
            self.assertEqual([batch[2].tolist() for batch in ours], orders[2][1:])

    def test_parts_of_processes(self):
        """Without a DistributedSampler each process has all samples, as with the DataLoader; frameworks that would add one say otherwise."""
        whole = ImageFolder(self.images(20), v1.ToTensor())
        with unittest.mock.patch.dict("os.environ", {"RANK": "1", "WORLD_SIZE": "2", "PL_GLOBAL_SEED": "5"}):
            with self.assertWarnsRegex(UserWarning, "each of the 2 processes gets all samples"):
                with Loader.like(DataLoader(whole, 5, shuffle=True)) as ours:
                    self.assertEqual(len(ours), 4)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                with (
                    Loader.like(DataLoader(whole, 5)) as ours,
                    Loader.like(DataLoader(whole, 5, shuffle=True), rank=1, world=4) as parts,
                ):
                    self.assertEqual((len(ours), len(parts)), (4, 1))
                started = types.ModuleType("accelerate.state")
                started.PartialState = type("PartialState", (), {"_shared_state": {"backend": "gloo"}})
                for modules in (
                    {"lightning.pytorch": types.ModuleType("lightning.pytorch")},
                    {"accelerate.state": started},
                ):
                    with (
                        unittest.mock.patch.dict(sys.modules, modules),
                        Loader.like(DataLoader(whole, 5, shuffle=True)) as ours,
                    ):
                        state = ours.state_dict()
                        self.assertEqual((len(ours), state["rank"], state["world"], state["seed"]), (2, 1, 2, 5))

    def test_what_it_would_refuse_is_known_without_trying(self):
        root = self.images(4)
        good = v1.Compose([v1.Resize((9, 9)), v1.ToTensor()])
        for loader in (
            DataLoader(ImageFolder(root, good), 2, shuffle=True, num_workers=2),
            DataLoader(Subset(ImageFolder(root, good), [2, 1]), 2),
            DataLoader(ImageFolder(root, v1.Compose([v1.RandomRotation(5), v1.ToTensor()])), 2),
            DataLoader(FakeData(8), 2),
            DataLoader(ImageFolder(root, good), 2, collate_fn=list),
            DataLoader(ImageFolder(root, good, loader=open), 2),
            DataLoader(ImageFolder(root, good), 2, sampler=RandomSampler(ImageFolder(root), num_samples=3)),
        ):
            why = refusal(loader)
            if why is None:
                Loader.like(loader).close()
            else:
                with self.assertRaises(ValueError) as caught:
                    Loader.like(loader)
                self.assertEqual(str(caught.exception), why)
        self.assertIn("RandomRotation", refusal(DataLoader(ImageFolder(root, v1.RandomRotation(5)), 2)))

    def test_what_scripts_ask_a_loader_for(self):
        theirs = DataLoader(ImageFolder(self.images(6), v1.ToTensor()), 4, shuffle=True)
        with Loader.like(theirs) as ours:
            self.assertIs(ours.dataset, theirs.dataset)
            self.assertIs(ours.sampler, theirs.sampler)
            self.assertEqual((len(ours.dataset), ours.batch_size, ours.drop_last), (6, 4, False))
            with pickle.loads(pickle.dumps(ours)) as spawned:
                self.assertEqual((len(spawned.dataset), spawned.state_dict()), (6, ours.state_dict()))

    def test_a_data_set_folder(self):
        root = self.images(6)
        from torchvision.datasets.folder import default_loader

        with from_torchvision(DatasetFolder(root, default_loader, (".png",), v1.PILToTensor()), 6) as ours:
            images, labels = next(iter(ours))
            self.assertEqual((images.dtype, labels.tolist()), (torch.uint8, [0, 0, 1, 1, 2, 2]))
            self.assertTrue(torch.equal(images[1].permute(1, 2, 0), torch.from_numpy(picture(3))))


if __name__ == "__main__":
    unittest.main()
