# SPDX-License-Identifier: Apache-2.0
# What we remember of objects of the script, kept beside them: they may be copied, pickled or compared.
import sys
import weakref


class Beside:
    """One value per object, for as long as it lives."""

    def __init__(self):
        self.values = {}

    def get(self, owner):
        found = self.values.get(id(owner))
        return found[1] if found is not None and found[0]() is owner else None

    def set(self, owner, value):
        number = id(owner)
        self.values[number] = weakref.ref(owner, lambda _: self.values.pop(number, None)), value


def _references(loader):
    iterator = loader.__dict__["_iterator"]
    return sys.getrefcount(iterator)


class _Alone:
    def __init__(self):
        self._iterator = object()


_ALONE = _references(_Alone())  # of an iterator that its loader alone holds; other versions of Python count otherwise


class Iterators:
    """The iterators of each loader that are in the middle of an epoch."""

    def __init__(self):
        self.of = Beside()  # weak references

    def living(self, loader):
        """Those that somebody may still ask for a batch. A loader with persistent workers holds its one itself."""
        out = []
        for reference in self.of.get(loader) or ():
            iterator = reference()
            if iterator is None or "_saturate_ended" in iterator.__dict__:
                continue
            own = loader.__dict__.get("_iterator") is iterator
            out.append((iterator, own))
        kept = [iterator for iterator, own in out if not own]
        is_own = any(own for _, own in out)
        del out
        iterator = None
        if is_own and _references(loader) > _ALONE:
            kept.append(loader.__dict__["_iterator"])
        return kept

    def add(self, loader, iterator):
        iterator.__dict__.pop("_saturate_ended", None)  # of the epoch before, where workers stay
        known = [reference for reference in self.of.get(loader) or () if reference() is not None]
        if all(reference() is not iterator for reference in known):
            known.append(weakref.ref(iterator))
        self.of.set(loader, known)


iterators = Iterators()
