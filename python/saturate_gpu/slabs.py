# SPDX-License-Identifier: Apache-2.0
"""Memory that the loader process fills and this process maps, with arrays and tensors over it that
need no copy.

A slab is given back when the last array or tensor over it is gone. A weak reference to the object
that all of them keep alive tells when. A forked child's arrays still show the same memory, so slabs
in use during a fork are never filled again.
"""

import ctypes
import functools
import mmap
import os
import sys
import weakref

MAP_POPULATE = getattr(mmap, "MAP_POPULATE", 0x8000)


class Slab:
    """A mapped slab. Puts its number into `gone` as a key when the last array over it is gone. That
    may happen in any thread, even during garbage collection."""

    def __init__(self, number, file, size, gone):
        try:
            self.memory = mmap.mmap(file, size, flags=mmap.MAP_SHARED | MAP_POPULATE)
        finally:
            os.close(file)
        self.number = number
        self._type = ctypes.c_char * size
        self.gone = functools.partial(gone.__setitem__, number)  # runs no Python code

    def show(self):
        """Returns an object over the memory; every array over it keeps it alive."""
        return self._type.from_buffer(self.memory)

    def lend(self):
        """Returns such an object and a weak reference to it; keep the reference to be told when it
        is gone."""
        exporter = self._type.from_buffer(self.memory)
        return exporter, weakref.ref(exporter, self.gone)


class Field:
    """One field of every batch: its place in a slab, and how to show it as an array."""

    def __init__(self, spec, offset):
        self.name, self.dtype, self.shape = spec["name"], spec["dtype"], tuple(spec["shape"])
        self.channels_last = spec["channels_last"]
        self.offset = offset
        self.elements = 1
        for length in self.shape:
            self.elements *= length
        self.stored = (*self.shape[1:], self.shape[0]) if self.channels_last else self.shape

    def torch(self, module):
        try:
            import numpy

            if self.dtype != "bfloat16":
                array, from_numpy = self.numpy(numpy), module.from_numpy
                return lambda exporter, samples: from_numpy(
                    array(exporter, samples)
                )  # half the time of frombuffer and view
        except ImportError:
            pass
        dtype, offset, elements = getattr(module, self.dtype), self.offset, self.elements
        stored, turned, frombuffer = self.stored, self.channels_last, module.frombuffer

        def show(exporter, samples):
            out = frombuffer(exporter, dtype=dtype, count=samples * elements, offset=offset).view(samples, *stored)
            return out.permute(0, 3, 1, 2) if turned else out

        return show

    def numpy(self, module):
        if self.dtype == "bfloat16":
            raise ValueError('dtype="bfloat16" needs PyTorch: NumPy has no such type')
        dtype, offset, stored, turned, ndarray = (
            module.dtype(self.dtype),
            self.offset,
            self.stored,
            self.channels_last,
            module.ndarray,
        )

        def show(exporter, samples):
            out = ndarray((samples, *stored), dtype, exporter, offset)
            return out.transpose(0, 3, 1, 2) if turned else out

        return show

    def alone(self, module):
        """For batches with only this field: saves an object per batch, which matters for small
        ones. Returns a function that gives the array or tensor of a slab and the weak reference to
        keep. Returns None if NumPy is needed but missing."""
        try:
            import numpy
        except ImportError:
            return None
        if self.dtype == "bfloat16" or self.channels_last:
            return None
        dtype, stored, ndarray, reference = numpy.dtype(self.dtype), self.stored, numpy.ndarray, weakref.ref
        if module.__name__ != "torch":

            def lend(slab, samples):
                array = ndarray((samples, *stored), dtype, slab.memory)
                return array, reference(array, slab.gone)

            return lend
        from_numpy = module.from_numpy

        def lend_tensor(slab, samples):
            array = ndarray((samples, *stored), dtype, slab.memory)
            return from_numpy(array), reference(array, slab.gone)

        return lend_tensor


def fields_of(specs, batch_size):
    out, offset = [], 0
    for spec in specs:
        out.append(Field(spec, offset))
        offset += -(-spec["sample_bytes"] * batch_size // 64) * 64  # same layout as in src/pipeline/slab.cpp
    return out


def library(name):
    """Imports "torch" or "numpy". Without a name: torch if the program has
    imported it, else numpy."""
    if name is None:
        name = "torch" if "torch" in sys.modules else "numpy"
    if name not in ("torch", "numpy"):
        raise ValueError(f'as_={name!r}: expected "torch" or "numpy"')
    try:
        return __import__(name)
    except ImportError:
        raise ImportError(f"batches should be {name} arrays, but {name} cannot be imported") from None
