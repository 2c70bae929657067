#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the recordings (docs/nvml-recording.md) that the tests and bench/monitor replay.

    scenarios.py FOLDER              every scenario, as FOLDER/<name>.jsonl
    scenarios.py FOLDER NAME [GPUS]  one of them, with that many GPUs

Time steps are 0.1 s, so that `--interval 0.1` with SATURATE_NVML_CLOCK=step:0.1 sees each once.
"""

import json
import os
import sys

GIB = 1 << 30
STEP = 0.1
STEPS = 60


def gpu_facts(index, **changes):
    facts = {
        "name": "NVIDIA H100 80GB HBM3",
        "uuid": f"GPU-11111111-2222-3333-4444-{index:012d}",
        "pci_bus_id": f"00000000:{0x18 + index:02X}:00.0",
        "minor": index,
        "architecture": 9,
        "capability": "9.0",
        "persistence_mode": True,
        "mig_mode": False,
    }
    facts.update(changes)
    return {key: value for key, value in facts.items() if value is not None}


class Recording:
    """The lines of a recording. Unchanged values are not written again."""

    def __init__(self, gpus, driver="580.65.06", nvml="13.580.65.06", cuda=13000, library=None):
        self.header = {
            "schema": 1,
            "kind": "nvml-recording",
            "driver": driver,
            "nvml": nvml,
            "cuda": cuda,
            "started_ns": 1760000000000000000,
            "gpus": gpus,
        }
        if library:
            self.header["library"] = library
        self.lines = []
        self.last = {}

    def add(self, t, gpu, call, value=None, arg=None, rc=0, type=None, scope=None):
        line = {"t": round(t, 4), "gpu": gpu, "call": call}
        for name, given in (("arg", arg), ("scope", scope), ("type", type)):
            if given is not None:
                line[name] = given
        if rc:
            line["rc"] = rc
        else:
            line["value"] = value
        key = (gpu, call, arg, scope)
        said = json.dumps([rc, value])
        if self.last.get(key) == said and call not in ("Samples", "ProcessUtilization"):
            return
        self.last[key] = said
        self.lines.append(line)

    def write(self, path, end):
        self.lines.sort(key=lambda line: line["t"])
        with open(path, "w", encoding="utf-8") as file:
            for line in [self.header, *self.lines, {"t": end, "call": "end"}]:
                file.write(json.dumps(line, separators=(",", ":")) + "\n")


class Gpu:
    """One GPU. Its counters are derived from utilisation and power."""

    def __init__(
        self,
        recording,
        index,
        total=80 * GIB,
        reserved=512 << 20,
        limit_watts=700,
        gpm=True,
        pid=4242,
        fields=True,
        memory=True,
    ):
        self.recording, self.index = recording, index
        self.total, self.reserved, self.limit = total, reserved, limit_watts
        self.gpm, self.pid, self.fields, self.memory = gpm, pid, fields, memory
        self.energy_mj = 5_000_000 * (index + 1)
        self.pcie_tx = self.pcie_rx = 1 << 20
        self.throttle_ns = {74: 0, 76: 0, 269: 0, 270: 0, 271: 0}
        self.static()

    def add(self, t, call, value=None, **more):
        self.recording.add(t, self.index, call, value, **more)

    def static(self):
        self.add(0, "EnforcedPowerLimit", self.limit * 1000)
        self.add(0, "PowerManagementLimit", self.limit * 1000)
        for clock, mhz in ((0, 1980), (1, 1980), (2, 2619), (3, 1545)):
            self.add(0, "MaxClockInfo", mhz, arg=clock)
        for call, value in (
            ("ComputeMode", 0),
            ("DisplayMode", 0),
            ("DisplayActive", 0),
            ("EncoderUtilization", 0),
            ("DecoderUtilization", 0),
        ):
            self.add(0, call, value)
        for kind in (0, 1):
            self.add(0, "TotalEccErrors", 0, arg=kind)
        self.add(0, "GraphicsRunningProcesses", [])
        self.add(0, "MPSComputeRunningProcesses", [])

    def tick(
        self,
        t,
        util,
        watts,
        used=60 * GIB,
        temperature=62,
        sm_mhz=1755,
        reasons=0,
        sm=None,
        tensor=None,
        pcie_bytes=200 << 20,
        throttle=(),
        samples=True,
        pids=None,
    ):
        self.add(t, "UtilizationRates", {"gpu": util, "memory": util // 2})
        if samples:
            self.add(t, "Samples", [[round(t, 4), util]], arg=1, type=1)
        if self.memory:
            self.add(
                t,
                "MemoryInfo",
                {
                    "total": self.total,
                    "reserved": self.reserved,
                    "free": self.total - self.reserved - used,
                    "used": used,
                },
            )
        self.add(t, "PowerUsage", int(watts * 1000))
        self.energy_mj += int(watts * 1000 * STEP)
        self.add(t, "TotalEnergyConsumption", self.energy_mj)
        self.add(t, "Temperature", temperature, arg=0)
        for clock, mhz in ((0, sm_mhz), (1, sm_mhz), (2, 2619), (3, 1545)):
            self.add(t, "ClockInfo", mhz, arg=clock)
        self.add(t, "PerformanceState", 0)
        self.add(t, "ClocksEventReasons", reasons)
        if self.fields:
            self.add(t, "FieldValue", temperature + 9, arg=82, type=1)
            self.add(t, "FieldValue", int(watts * 1000), arg=185, type=1)
            self.add(t, "FieldValue", int(watts * 1000), arg=186, type=1)
            self.add(t, "FieldValue", self.limit * 1000, arg=190, type=1)
            self.add(t, "FieldValue", self.energy_mj, arg=83)
            self.add(t, "FieldValue", 0, arg=4)
            self.pcie_tx = (self.pcie_tx + int(pcie_bytes * STEP) // 4) % (1 << 32)
            self.pcie_rx = (self.pcie_rx + int(pcie_bytes * STEP)) % (1 << 32)
            self.add(t, "FieldValue", self.pcie_tx, arg=197)
            self.add(t, "FieldValue", self.pcie_rx, arg=198)
            for field in self.throttle_ns:
                if field in throttle:
                    self.throttle_ns[field] += int(STEP * 1e9)
                self.add(t, "FieldValue", self.throttle_ns[field], arg=field)
        if self.gpm:
            sm = util if sm is None else sm
            for metric, value in (
                (1, util),
                (2, sm),
                (3, sm * 0.5),
                (5, sm * 0.4 if tensor is None else tensor),
                (10, sm * 0.3),
                (20, pcie_bytes / 4 / (1 << 20)),
                (21, pcie_bytes / (1 << 20)),
            ):
                self.add(t, "GpmMetric", float(value), arg=metric)
        pids = [self.pid] if pids is None else pids
        self.add(t, "ComputeRunningProcesses", [{"pid": pid, "used_bytes": used // max(1, len(pids))} for pid in pids])
        self.add(
            t,
            "ProcessUtilization",
            [
                {"time": round(t, 4), "pid": pid, "sm": util // max(1, len(pids)), "mem": util // 4, "enc": 0, "dec": 0}
                for pid in pids
            ],
        )


def each_step():
    return [(i, round(i * STEP, 4)) for i in range(STEPS)]


def busy(gpus):
    """Steady at 96 to 98 %: nothing to complain about."""
    recording = Recording([gpu_facts(i) for i in range(gpus)])
    for index in range(gpus):
        gpu = Gpu(recording, index, pid=4242 + index)
        for i, t in each_step():
            gpu.tick(t, 96 + (i + index) % 3, 610 + index)
    return recording


def idle(gpus):
    """Nothing runs."""
    recording = Recording([gpu_facts(i) for i in range(gpus)])
    for index in range(gpus):
        gpu = Gpu(recording, index)
        for _, t in each_step():
            gpu.tick(t, 0, 72, used=0, temperature=34, sm_mhz=345, reasons=1, sm=0, pcie_bytes=0, pids=[])
    return recording


def starved(gpus):
    """A sawtooth of 0 and 100 %: the loader cannot keep up."""
    recording = Recording([gpu_facts(i) for i in range(gpus)])
    for index in range(gpus):
        gpu = Gpu(recording, index)
        for i, t in each_step():
            on = i % 4 == 0
            gpu.tick(t, 100 if on else 0, 480 if on else 140, sm=88 if on else 0)
    return recording


def nccl_spin(gpus):
    """One SM spins in a collective: 100 % busy, 5 % active, near idle power."""
    recording = Recording([gpu_facts(i) for i in range(gpus)])
    for index in range(gpus):
        gpu = Gpu(recording, index)
        for _, t in each_step():
            gpu.tick(t, 100, 150, sm=5, tensor=0, pcie_bytes=10 << 20)
    return recording


def power_cap(gpus):
    """Held back by the power limit two thirds of the time."""
    recording = Recording([gpu_facts(i) for i in range(gpus)])
    for index in range(gpus):
        gpu = Gpu(recording, index)
        for i, t in each_step():
            capped = i % 3 != 0
            gpu.tick(
                t,
                99,
                699,
                sm_mhz=1320 if capped else 1755,
                reasons=4 if capped else 0,
                throttle=(74,) if capped else (),
            )
    return recording


def thermal(gpus):
    """Heats up to 91 C, then slows down."""
    recording = Recording([gpu_facts(i) for i in range(gpus)])
    for index in range(gpus):
        gpu = Gpu(recording, index)
        for i, t in each_step():
            hot = i >= 20
            gpu.tick(
                t,
                98,
                520 if hot else 640,
                temperature=min(91, 70 + i),
                sm_mhz=900 if hot else 1755,
                reasons=0x20 if hot else 0,
                throttle=(269,) if hot else (),
            )
    return recording


def gpu_lost(gpus):
    """The second of two GPUs falls off the bus after a second."""
    gpus = max(2, gpus)
    recording = busy(gpus)
    recording.add(1.0, 1, "*", rc=15)
    return recording


def processes_grow(gpus):
    """Two more processes than the driver announces."""
    recording = busy(gpus)
    recording.header["library"] = {"grow_processes": 2}
    return recording


def steady(gpus):
    """One constant reading: the least work for the library, so that a benchmark measures the reader."""
    recording = Recording([gpu_facts(i) for i in range(gpus)])
    for index in range(gpus):
        Gpu(recording, index, pid=4242 + index).tick(0, 97, 610)
    return recording


def stride(bytes_per_entry):
    def write(gpus):
        recording = Recording([gpu_facts(i) for i in range(gpus)], library={"process_stride": bytes_per_entry})
        for index in range(gpus):
            gpu = Gpu(recording, index)
            for _, t in each_step():
                gpu.tick(t, 97, 610, pids=[4242, 4343, 4444])
        return recording

    write.__doc__ = f"Process entries of {bytes_per_entry} bytes."
    return write


def no_samples(gpus):
    """The ring answers NOT_FOUND, as it does on an idle GPU."""
    recording = Recording([gpu_facts(i) for i in range(gpus)])
    for index in range(gpus):
        gpu = Gpu(recording, index)
        gpu.add(0, "Samples", arg=1, rc=6)
        for _, t in each_step():
            gpu.tick(t, 64, 410, samples=False)
    return recording


def counter_wrap(gpus):
    """PCIe bytes wrap at 2^32 after a second or so."""
    recording = Recording([gpu_facts(i) for i in range(gpus)])
    for index in range(gpus):
        gpu = Gpu(recording, index)
        gpu.pcie_rx = (1 << 32) - (250 << 20)
        gpu.pcie_tx = (1 << 32) - (60 << 20)
        for _, t in each_step():
            gpu.tick(t, 97, 610)
    return recording


def mig(gpus):
    """Split into two instances: no utilisation by design."""
    recording = Recording([gpu_facts(i, mig_mode=True) for i in range(gpus)])
    for index in range(gpus):
        gpu = Gpu(recording, index, gpm=False)
        gpu.add(
            0,
            "MigDevices",
            [
                {
                    "uuid": f"MIG-aaaaaaaa-0000-0000-0000-{index * 10 + i:012d}",
                    "gpu_instance": i + 1,
                    "compute_instance": 0,
                    "memory_total": 40 * GIB,
                    "memory_used": (10 + i) * GIB,
                }
                for i in range(2)
            ],
        )
        for _, t in each_step():
            gpu.tick(t, 0, 310, used=21 * GIB, samples=False)
    for line in recording.lines:
        if line["call"] in ("UtilizationRates", "EncoderUtilization", "DecoderUtilization", "ProcessUtilization"):
            line.pop("value")
            line["rc"] = 3
    return recording


def unified(gpus):
    """Memory shared with the CPU (GB10): the GPU's own memory cannot be asked for, nor its limit."""
    recording = Recording([gpu_facts(i, name="NVIDIA GB10", architecture=10, capability="12.1") for i in range(gpus)])
    for index in range(gpus):
        gpu = Gpu(recording, index, memory=False, gpm=False, limit_watts=140)
        gpu.add(0, "MemoryInfo", rc=3)
        for _, t in each_step():
            gpu.tick(t, 91, 88, used=30 * GIB)
    recording.lines = [
        line
        for line in recording.lines
        if line["call"] not in ("EnforcedPowerLimit", "PowerManagementLimit") and line.get("arg") != 190
    ]
    return recording


def slow_calls(gpus):
    """Every call takes 2 ms."""
    recording = busy(gpus)
    recording.header["library"] = {"latency_us": 2000}
    return recording


def old_driver(gpus):
    """R470 on a V100, replayed with the library in nvml/old."""
    recording = Recording(
        [gpu_facts(i, name="Tesla V100-SXM2-16GB", architecture=5, capability="7.0") for i in range(gpus)],
        driver="470.256.02",
        nvml="11.470.256.02",
        cuda=11040,
    )
    for index in range(gpus):
        gpu = Gpu(recording, index, total=16 * GIB, reserved=300 << 20, limit_watts=300, gpm=False, fields=False)
        for _, t in each_step():
            gpu.tick(t, 88, 241, used=12 * GIB, sm_mhz=1530)
    return recording


SCENARIOS = {
    "busy": busy,
    "idle": idle,
    "starved": starved,
    "nccl_spin": nccl_spin,
    "power_cap": power_cap,
    "thermal": thermal,
    "gpu_lost": gpu_lost,
    "processes_grow": processes_grow,
    "stride_24": stride(24),
    "stride_32": stride(32),
    "no_samples": no_samples,
    "counter_wrap": counter_wrap,
    "mig": mig,
    "unified": unified,
    "slow_calls": slow_calls,
    "old_driver": old_driver,
    "steady": steady,
    "eight_gpus": busy,
}


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    wanted = [sys.argv[2]] if len(sys.argv) > 2 else list(SCENARIOS)
    for name in wanted:
        gpus = int(sys.argv[3]) if len(sys.argv) > 3 else 8 if name == "eight_gpus" else 1
        SCENARIOS[name](gpus).write(os.path.join(folder, name + ".jsonl"), STEPS * STEP)


if __name__ == "__main__":
    main()
