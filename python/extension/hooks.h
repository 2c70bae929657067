// SPDX-License-Identifier: Apache-2.0
// The hooks that run in every step, as C functions in the limited API of Python 3.9, and what they
// share with module.cpp. Each calls the original in every case. _saturate_shim/hooks.py has the
// same in Python. All under the interpreter's lock.
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

// Functions of the shim's Python.
struct Calls {
    PyObject* open = nullptr;       // () opens the ring
    PyObject* step = nullptr;       // (number, now) after a training step that is due
    PyObject* optimizer = nullptr;  // (optimizer) when it steps for the first time
    PyObject* zero_grad = nullptr;  // () when gradients are filled with zeros for the first time
    PyObject* enough = nullptr;     // () when calls of zero_grad need not be counted any more
    PyObject* fetch = nullptr;      // () -> (path of the ring, worker + 1); no path: ours
    // (name, ns, whether it waited for a device, whether it is the loss, result) after a read
    PyObject* read = nullptr;
    PyObject* loss = nullptr;     // (tensor) on a device, after backward; None: not asked for
    PyObject* disable = nullptr;  // (where, error) takes all hooks out
};
extern Calls calls;

// What is known of a loader, so that not every batch has to be asked.
struct LoaderFacts {
    std::uint32_t batch_size = 0;  // 0: differs
    std::int64_t batches = 0;      // of an epoch; 0: unknown
    std::int64_t given = 0;        // in this epoch
    std::uint32_t samples = 0;     // of the batch that was asked last; 0: none was
    std::uint32_t ready_made = 1;  // in a batch of one
    bool in_process = false;       // without workers: what is waited for is made meanwhile
};

struct HookState {
    PyTypeObject* tensor = nullptr;
    bool reads_wait_always = false;  // for tests without a GPU
    bool is_in_backward = false, is_reading = false;
    PyObject* root = nullptr;          // weak: what the last backward was called on
    bool is_loss_known = false;        // ... and whether its value is
    long long zero_grads[2] = {};      // calls to zero, to None
    PyObject* iterator = nullptr;      // the last one, only compared ...
    std::int64_t iterator_loader = 0;  // ... and its loader
    LoaderFacts loaders[256];
};
extern HookState hook_state;

void make_names();  // once, before all else

[[nodiscard]] bool is_open();  // the ring; opens it, and ends the watching where that fails
bool tell_if_due();            // calls.step; false: nothing was due

// hook(name, owner, old, number): `old` of a type, or of a module, with our time around it.
PyObject* hook(PyObject* module, PyObject* args);
// For torch's optimizer hooks and gc.callbacks.
PyObject* before_step(PyObject* module, PyObject* args);
PyObject* after_step(PyObject* module, PyObject* args);
PyObject* collected(PyObject* module, PyObject* args);

}  // namespace saturate
