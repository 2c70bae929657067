# SPDX-License-Identifier: Apache-2.0
# The part of `saturate run` inside a Python process. It waits until somebody else imports torch,
# then hooks what shows training steps (hooks.py) and writes the steps into a mapped ring (steps.py)
# and facts into a JSON file (facts.py). If the shim itself fails, it removes all hooks and reports
# that once; the script then runs as if the shim had never been there.
import os
import sys

RUN_DIR = os.environ.get("SATURATE_RUN_DIR", "")

_hooks = []  # newest last
_said = set()
is_off = False


def say(text):
    if text in _said:
        return
    _said.add(text)
    try:
        sys.stderr.write("saturate: %s\n" % text)
    except Exception:
        pass


def replace(owner, name, make):
    """Replaces owner.name by make(old). disable() restores it."""
    own = name in vars(owner)
    old = getattr(owner, name)
    new = make(old)
    for part in ("__name__", "__qualname__", "__doc__", "__module__", "__wrapped__"):
        try:
            setattr(new, part, old if part == "__wrapped__" else getattr(old, part))
        except Exception:
            pass
    hook = Hook(
        lambda: setattr(owner, name, old) if own else delattr(owner, name),
        lambda: setattr(owner, name, new),
        lambda: vars(owner).get(name) is new,
    )
    hook.put_in()
    _hooks.append(hook)
    return hook


class Hook:
    def __init__(self, take_out, put_in, is_in=lambda: True):
        self.take_out, self.put_in, self.is_in = take_out, put_in, is_in

    def retire(self):
        """Removes this one hook once it has seen enough, unless somebody else has
        replaced it since."""
        if self in _hooks and self.is_in():
            _hooks.remove(self)
            self.take_out()


def on_disable(take_out, put_in=lambda: None):
    _hooks.append(Hook(take_out, put_in))


def switch(is_on):
    """Puts all hooks in or takes them out: bench/run alternates to measure their cost."""
    for hook in _hooks if is_on else reversed(_hooks):
        if is_on:
            hook.put_in()
        else:
            hook.take_out()


def disable(where, error):
    """Removes all hooks. Called from an except clause of a hook."""
    global is_off
    if is_off:
        return
    is_off = True
    while _hooks:
        try:
            _hooks.pop().take_out()
        except Exception:
            pass
    say("no longer watching from inside (%s: %s: %s)" % (where, type(error).__name__, error))


class _Finder:
    """Calls a function after a module was imported. Stays installed, because libraries call
    find_spec("torch") without importing it."""

    def __init__(self, after):
        self.after = after
        self.busy = set()

    def find_spec(self, name, path=None, target=None):
        if name not in self.after or name in self.busy or is_off:
            return None
        from importlib.util import find_spec

        self.busy.add(name)
        try:
            spec = find_spec(name)
        finally:
            self.busy.discard(name)
        if spec is None or spec.loader is None or not hasattr(spec.loader, "exec_module"):
            return spec
        loader, function = spec.loader, self.after[name]
        plain = loader.exec_module

        def exec_module(module):
            try:
                del loader.exec_module  # so that torch.__loader__ shows the loader unchanged
            except AttributeError:
                pass
            plain(module)
            if self.after.pop(name, None) is not None:
                try:
                    function(module)
                except Exception as error:
                    disable("hooking " + name, error)

        loader.exec_module = exec_module
        return spec


def arm():
    from . import files, hooks

    files.install()

    after = hooks.after_import()
    for name in list(after):
        if name in sys.modules:
            after.pop(name)(sys.modules[name])
    if after:
        sys.meta_path.insert(0, _Finder(after))
