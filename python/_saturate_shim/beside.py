# SPDX-License-Identifier: Apache-2.0
# Values that we remember for objects of the script. Kept outside the objects, because the script
# may copy, pickle or compare them.
import sys
import weakref


class Beside:
    """One value per object, for as long as the object lives."""

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


_ALONE = _references(_Alone())  # count for an iterator held only by its loader; Python versions differ


class Iterators:
    """The iterators of each loader that are in mid-epoch."""

    def __init__(self):
        self.of = Beside()  # weak references

    def living(self, loader):
        """Returns the iterators that somebody may still ask for a batch. A loader with persistent
        workers holds its own iterator."""
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
        iterator.__dict__.pop("_saturate_ended", None)  # left over from the previous epoch if workers stay
        known = [reference for reference in self.of.get(loader) or () if reference() is not None]
        if all(reference() is not iterator for reference in known):
            known.append(weakref.ref(iterator))
        self.of.set(loader, known)


iterators = Iterators()
