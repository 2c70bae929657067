# SPDX-License-Identifier: Apache-2.0
"""LightningCLI and jsonargparse's CLI: a configuration sets parameters of classes that it or the
program names.

They refuse keys that no class accepts, so every key in such a file has a reader.
"""

from .literals import argument_of

LIBRARIES = ("pytorch_lightning", "lightning", "jsonargparse")
CLASSES = (("model_class", "model"), ("datamodule_class", "data"))  # parameters of LightningCLI, and their sections


def find_configured(project, values, settings):
    """Fills values.clis (the calls) and values.configured (class Scope -> section
    with its parameters)."""
    sources = [source for source in project.order if source.index is not None]
    if not any(module.startswith(LIBRARIES) for source in sources for module, _, _, _ in source.index.imports):
        return
    for source in sources:
        for call in source.index.calls:
            if any(_is_cli(values, value) for value in values.of(call.func)):
                values.clis.append(call)
    for call in values.clis:
        for position, (name, section) in enumerate(CLASSES):
            given = argument_of(call, name, position)
            for value in values.of(given) if given is not None else ():
                if value[0] == "cls":
                    values.configured.setdefault(value[1], (section,))
    for declaration in settings.all if values.clis else ():
        text = (declaration.value or {}).get("literal")
        found = values.named(text) if declaration.key == "class_path" and isinstance(text, str) else None
        if found is not None and found[0] == "cls":
            values.configured[found[1]] = declaration.path[:-1] + ("init_args",)


def _is_cli(values, value):
    names = [value[1]] if value[0] == "ext" else values.lineage(value[1])[1] if value[0] == "cls" else ()
    return any(
        name.endswith(".LightningCLI") or name in ("jsonargparse.CLI", "jsonargparse.auto_cli") for name in names
    )
