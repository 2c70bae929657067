# SPDX-License-Identifier: Apache-2.0
"""Runs the analyses of a loaded project in the order of their dependencies and
collects the facts."""

import re

from . import names
from .calls import Calls
from .cli import find_configured
from .datasets import Datasets
from .edits import Edits
from .effect import Effect
from .flow import Flow
from .holders import Holders
from .key_reads import KeyReads
from .loops import Loops
from .reach import Reach
from .reads import Reads
from .scopes import statement_of
from .tensors import Tensors
from .traps import Traps
from .waits import Waits

# In the source, or inside of a library that it imports.
CONVOLUTION = re.compile(
    rb"[Cc]onv(_transpose|Transpose)?[123]d\b|^\s*(from|import)\s+(torchvision|timm|segmentation_models|monai|efficientnet|diffusers|ultralytics|detectron|mm(cv|det|seg|engine))",
    re.M,
)


def analyse(facts, project, values, settings, configs):
    facts["frameworks"] = _frameworks(project)
    facts["convolves"] = any(CONVOLUTION.search(source.data) for source in project.order) or project.is_partly_read
    values.connect()
    settings.read_python()
    holders = Holders(project, values)
    holders.find()
    find_configured(project, values, settings)
    values.forget()
    reach = Reach(project, values)
    known_better = settings.drop_off_writes(reach)
    if settings.drop_unreached(reach) or known_better:
        values.forget()
        if known_better:
            values.connect()  # now enter only the calls that such a setting chooses
        reach = Reach(project, values)
    loops = Loops(project, values, reach)
    found = loops.find()
    tensors = Tensors(values)
    waits = Waits(values, tensors, reach, loops).find(found)
    calls = Calls(project, values, settings, Flow(values, settings), reach, loops, tensors)
    facts["calls"] = calls.find()
    facts["alternatives"] = calls.alternatives
    datasets = Datasets(values, tensors, reach, loops)
    for node, entry in calls.by_node.items():
        if entry["kind"] == "loader":
            entry["dataset"] = datasets.of_loader(node)
    facts["traps"] = Traps(project, values, reach, loops, calls, datasets, waits, tensors).find()
    if any(trap["kind"] == "on_cpu" for trap in facts["traps"]):
        waits = []  # for no GPU
    facts["waits"] = [_wait(w) for w in waits]
    facts["loops"] = [_loop(one, loops, calls) for one in found]
    Edits(project, values, loops, calls, tensors).add(facts, found, waits)
    reads = Reads(project, values, settings, reach, tensors, holders)
    reads.collect()
    facts["without_effect"] = Effect(project, values, settings, reads, reach, calls, configs, holders).find()
    keys = KeyReads(settings, reads, reach)
    for entry in configs.found.values():
        if entry["format"] != "python":
            entry["keys"] = keys.of(entry["text"].file, entry["prefix"])


def _frameworks(project):
    seen = {}
    for source in project.order:
        if source.index is None:
            continue
        for module, _, level, node in source.index.imports:
            name = names.FRAMEWORKS.get(module.split(".")[0]) if not level else None
            if name and name not in seen and project.find(source, module.split(".")[0], 0) is None:
                seen[name] = dict(name=name, **source.place(node))
    return list(seen.values())


def _wait(wait):
    node = wait.node
    source = node.src
    entry = source.place(node)
    statement = statement_of(node)
    interval = wait.interval
    entry.update(
        {
            "statement": source.span(statement),
            "what": wait.what,
            "class": wait.kind,
            "when": wait.when,
            "use": wait.use,
            "interval": interval.src.text(interval) if interval is not None else None,
            "value": {"bytes": source.span(wait.value), "text": source.text(wait.value)}
            if wait.value is not None
            else None,
            "loop": wait.loop.id,
            "path": [c.src.place(c) for c in wait.path],
            "certainty": wait.certainty,
            "said": wait.when in ("step", "branch") and wait.certainty != "unknown" and wait.kind != "sync_implicit",
        }
    )
    return entry


def _loop(loop, loops, calls):
    source = loop.node.src
    entry = source.place(loop.node)
    body = loop.body
    inside = {}
    for call in calls.by_node.values():
        if call["in_step"] == loop.id and call["kind"] in ("backward", "step", "zero_grad"):
            inside.setdefault(call["kind"], call["id"])
    entry.update(
        {
            "id": loop.id,
            "kind": loop.kind,
            "function": loop.scope.qualified(),
            "certainty": loop.certainty,
            "role": "train",
            "body": [source.span(body[0])[0], source.span(body[-1])[1]],
            "epochs": [n.src.place(n) for n in loops.epochs(loop)],
            "swallows": loop.swallows,
            "loader": calls.by_node[loop.loader]["id"] if loop.loader in calls.by_node else None,
            "backward": inside.get("backward"),
            "step": inside.get("step"),
            "zero_grad": inside.get("zero_grad"),
            "counter": loops.counter(loop),
            "functions": [
                dict(name=s.qualified(), when=when, **s.source.place(s.node)) for s, when in loop.functions.items()
            ],
        }
    )
    return entry
