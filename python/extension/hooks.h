// SPDX-License-Identifier: Apache-2.0
// The hooks that run in every step, as C functions in the limited API of Python 3.9, and the state
// they share with module.cpp. Each hook calls the original in every case. _saturate_shim/hooks.py
// has the same hooks in Python. All run under the interpreter's lock.
#pragma once

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03090000
#include <Python.h>

#include "fetches.h"
#include "steps.h"
#include "tick_clock.h"

namespace saturate {

extern Steps steps;
extern Fetches fetches;
extern TickClock tick_clock;

// Python functions of the shim.
struct Calls {
    PyObject* open = nullptr;       // () opens the ring
    PyObject* step = nullptr;       // (number, now) after a training step if take_due() says so
    PyObject* optimizer = nullptr;  // (optimizer) when it steps for the first time
    PyObject* zero_grad = nullptr;  // () when gradients are first filled with zeros
    PyObject* enough = nullptr;     // () when zero_grad calls need no more counting
    PyObject* fetch = nullptr;      // () -> (path of the ring, worker + 1); no path: no worker
    // (name, ns, whether it waited for a device, whether it is the loss, result) after a read
    PyObject* read = nullptr;
    PyObject* loss = nullptr;     // (tensor) on a device, after backward; None: not wanted
    PyObject* disable = nullptr;  // (where, error) removes all hooks
};
extern Calls calls;

// Facts about a loader, so that not every batch has to be measured.
struct LoaderFacts {
    std::uint32_t batch_size = 0;  // 0: varies
    std::int64_t batches = 0;      // of an epoch; 0: unknown
    std::int64_t given = 0;        // returned in this epoch
    std::uint32_t samples = 0;     // of the last measured batch; 0: none measured
    std::uint32_t ready_made = 1;  // samples in a batch of one
    bool in_process = false;       // no workers: the wait is spent making the batch
};

struct HookState {
    PyTypeObject* tensor = nullptr;
    bool reads_wait_always = false;  // for tests without a GPU
    bool is_in_backward = false, is_reading = false;
    PyObject* root = nullptr;          // weak: the tensor that backward was called on last
    bool is_loss_known = false;        // ... and whether its value is known
    long long zero_grads[2] = {};      // calls that set gradients to zero, to None
    PyObject* iterator = nullptr;      // the last one, only compared ...
    std::int64_t iterator_loader = 0;  // ... and its loader
    LoaderFacts loaders[256];
};
extern HookState hook_state;

void make_names();  // call once, before everything else

[[nodiscard]] bool is_open();  // opens the ring if needed; if that fails, the watching ends
bool tell_if_due();            // calls calls.step; returns false if nothing was due

// hook(name, owner, old, number): wraps `old`, a function of a type or module, with our timing.
PyObject* hook(PyObject* module, PyObject* args);
// For torch's optimizer hooks and gc.callbacks.
PyObject* before_step(PyObject* module, PyObject* args);
PyObject* after_step(PyObject* module, PyObject* args);
PyObject* collected(PyObject* module, PyObject* args);

}  // namespace saturate
