# SPDX-License-Identifier: Apache-2.0
"""A peer of works A and B: peer_images_tfdata.py A|B FOLDER SECONDS crop|antialias

crop resizes without antialiasing, which is tf.data's usual and does less work than the others.
"""

import os
import pathlib
import sys
import time

STARTED = time.monotonic()
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tensorflow as tf

from common import time_batches

work, folder, seconds, kind = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]
MEAN, DEVIATION = tf.constant([0.485, 0.456, 0.406]) * 255, tf.constant([0.229, 0.224, 0.225]) * 255


def photo(path):
    content = tf.io.read_file(path)
    start, size, _ = tf.image.sample_distorted_bounding_box(
        tf.io.extract_jpeg_shape(content),
        tf.zeros([1, 0, 4], tf.float32),
        min_object_covered=0.0,
        aspect_ratio_range=(3 / 4, 4 / 3),
        area_range=(0.08, 1.0),
        max_attempts=10,
        use_image_if_no_bounding_boxes=True,
    )
    y, x, _ = tf.unstack(start)
    height, width, _ = tf.unstack(size)
    image = tf.io.decode_and_crop_jpeg(content, tf.stack([y, x, height, width]), channels=3)
    image = tf.image.resize(image, [224, 224], antialias=kind == "antialias")
    return (tf.image.random_flip_left_right(image) - MEAN) / DEVIATION


def grey(path):
    return (tf.cast(tf.io.decode_png(tf.io.read_file(path), channels=1), tf.float32) - 127.5) / 63.75


paths = sorted(str(path) for path in pathlib.Path(folder).glob("*/*"))
dataset = (
    tf.data.Dataset.from_tensor_slices(paths)
    .shuffle(len(paths), seed=1)
    .map(photo if work == "A" else grey, num_parallel_calls=tf.data.AUTOTUNE)
    .batch(64 if work == "A" else 128, drop_remainder=True)
    .prefetch(tf.data.AUTOTUNE)
)


def forever():
    while True:
        yield from dataset


time_batches(forever(), seconds, lambda batch: int(batch.shape[0]), STARTED)
