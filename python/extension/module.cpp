// SPDX-License-Identifier: Apache-2.0
// _saturate_step: the hot path of `saturate run` inside a Python process, one binary for every
// Python from 3.9 on. Called by _saturate_shim/native.py; the hooks themselves are in hooks.cpp.
#include <stdlib.h>
#include <time.h>

#include <initializer_list>

#include "hooks.h"

namespace saturate {
namespace {

// For a process that ends without Python's exit handlers, e.g. by exit() in a library. Does the
// same as at_exit in _saturate_shim/profiler.py, which runs first if Python itself ends.
void wait_for_window() {
    steps.set_flag(ring::kEndedAt, true);
    timespec moment{0, 10'000'000};
    while (tick_clock.now() < steps.window_until()) ::nanosleep(&moment, nullptr);
}

PyObject* prepare(PyObject*, PyObject* args) {
    int always = 0;
    PyObject* tensor;
    if (!PyArg_ParseTuple(args, "OOOOOOOOOOp", &tensor, &calls.open, &calls.step, &calls.optimizer,
                          &calls.zero_grad, &calls.enough, &calls.fetch, &calls.read, &calls.loss,
                          &calls.disable, &always))
        return nullptr;
    for (PyObject* call : {tensor, calls.open, calls.step, calls.optimizer, calls.zero_grad,
                           calls.enough, calls.fetch, calls.read, calls.loss, calls.disable})
        Py_INCREF(call);
    hook_state.tensor = reinterpret_cast<PyTypeObject*>(tensor);
    hook_state.reads_wait_always = always != 0;
    static bool is_registered = false;
    if (!is_registered) is_registered = ::atexit(wait_for_window) == 0;
    Py_RETURN_NONE;
}

PyObject* open(PyObject*, PyObject* args) {
    const char* path;
    long long pid;
    int rank, world, local_world;
    if (!PyArg_ParseTuple(args, "sLiii", &path, &pid, &rank, &world, &local_world)) return nullptr;
    if (!steps.open(path, {pid, rank, world, local_world}))
        return PyErr_SetFromErrnoWithFilename(PyExc_OSError, path);
    Py_RETURN_NONE;
}

PyObject* reset(PyObject*, PyObject*) {
    steps.reset();
    fetches.forget();
    hook_state.is_in_backward = hook_state.is_reading = false;
    hook_state.is_loss_known = false;
    Py_XDECREF(hook_state.root);
    hook_state.root = nullptr;
    Py_RETURN_NONE;
}

// Returns (training steps, what marks their boundaries, whether the ring is open, calls of
// zero_grad that set to zero, that set to None, optimizer steps in other threads).
PyObject* state(PyObject*, PyObject*) {
    constexpr const char* kLoops[] = {"", "loader", "optimizer", "backward"};
    return Py_BuildValue("LsiLLL", static_cast<long long>(steps.training()),
                         kLoops[static_cast<int>(steps.loop())], steps.bytes() ? 1 : 0,
                         hook_state.zero_grads[0], hook_state.zero_grads[1],
                         static_cast<long long>(steps.foreign_steps()));
}

PyObject* set_rank(PyObject*, PyObject* args) {
    int rank, world;
    if (!PyArg_ParseTuple(args, "ii", &rank, &world)) return nullptr;
    steps.set_rank(rank, world);
    Py_RETURN_NONE;
}

// A loader starts: sets its number, batch size and batches per epoch (0 if unknown), and whether it
// makes its batches in this process.
PyObject* set_loader(PyObject*, PyObject* args) {
    int number;
    unsigned int size;
    long long batches;
    int in_process;
    if (!PyArg_ParseTuple(args, "iILp", &number, &size, &batches, &in_process)) return nullptr;
    hook_state.iterator = nullptr;  // a new iterator may get the same address
    if (number >= 0 && number < 256)
        hook_state.loaders[number] = {.batch_size = size,
                                      .batches = batches,
                                      .ready_made = hook_state.loaders[number].ready_made,
                                      .in_process = in_process != 0};
    Py_RETURN_NONE;
}

// Sets how many samples a loader's batch of one has, or a step without a loader (number -1).
PyObject* set_samples(PyObject*, PyObject* args) {
    int number;
    unsigned int samples;
    if (!PyArg_ParseTuple(args, "iI", &number, &samples)) return nullptr;
    if (number < 0) steps.own_samples = samples;
    if (number >= 0 && number < 256) {
        hook_state.loaders[number].ready_made = samples;
        hook_state.loaders[number].samples = 0;
    }
    Py_RETURN_NONE;
}

// In mid-epoch: sets whether the loader's batches are made in this process or come from workers.
PyObject* set_in_process(PyObject*, PyObject* args) {
    int number, in_process;
    if (!PyArg_ParseTuple(args, "ip", &number, &in_process)) return nullptr;
    if (number >= 0 && number < 256) hook_state.loaders[number].in_process = in_process != 0;
    Py_RETURN_NONE;
}

PyObject* set_fetch_loader(PyObject*, PyObject* args) {
    long long number;
    if (!PyArg_ParseTuple(args, "L", &number)) return nullptr;
    fetches.set_loader(number);
    Py_RETURN_NONE;
}

PyObject* set_has_optimizer(PyObject*, PyObject*) {
    steps.has_optimizer = true;
    Py_RETURN_NONE;
}

PyObject* wake(PyObject*, PyObject* args) {
    long long at;
    int every_step;
    if (!PyArg_ParseTuple(args, "Lp", &at, &every_step)) return nullptr;
    steps.wake_ns = at;
    steps.every_step = every_step != 0;
    Py_RETURN_NONE;
}

PyObject* take_flag(PyObject*, PyObject* args) {
    int offset;
    if (!PyArg_ParseTuple(args, "i", &offset)) return nullptr;
    return PyLong_FromLong(steps.take_flag(static_cast<std::size_t>(offset)));
}

PyObject* set_flag(PyObject*, PyObject* args) {
    int offset, is_set;
    if (!PyArg_ParseTuple(args, "ip", &offset, &is_set)) return nullptr;
    steps.set_flag(static_cast<std::size_t>(offset), is_set != 0);
    Py_RETURN_NONE;
}

PyObject* window_until(PyObject*, PyObject*) {
    return PyLong_FromLongLong(static_cast<long long>(steps.window_until()));
}

PyObject* put_aside(PyObject*, PyObject* args) {
    int kind;
    long long owner, start, duration;
    if (!PyArg_ParseTuple(args, "iLLL", &kind, &owner, &start, &duration)) return nullptr;
    if (is_open()) steps.put_aside(static_cast<RingKind>(kind), owner, start, duration);
    Py_RETURN_NONE;
}

PyObject* finish(PyObject*, PyObject*) {
    steps.finish();
    tell_if_due();
    Py_RETURN_NONE;
}

// Takes the events of a hook from the test that compares with steps.py: (name, numbers...).
PyObject* tell(PyObject*, PyObject* args) {
    const char* name;
    long long a, b = 0, c = 0, d = 0;
    if (!PyArg_ParseTuple(args, "sL|LLL", &name, &a, &b, &c, &d)) return nullptr;
    switch (name[0]) {
        case 'a':
            steps.asked(a, b);
            break;
        case 'g':
            steps.got(a, b, c, static_cast<std::uint32_t>(d));
            break;
        case 'e':
            steps.ended(a, b, c);
            break;
        case 'o':
            steps.optimizer_stepped(reinterpret_cast<const void*>(a), b, c);
            break;
        case 'b':
            steps.backward_done(a, b);
            break;
        case 'c':
            steps.collected(a);
            break;
        case 'l':
            b ? steps.loss_read(static_cast<double>(a)) : steps.loss_known(static_cast<double>(a));
            break;
        case 'w':
            steps.waited_for_device(a);
            break;
        default:
            return PyErr_Format(PyExc_ValueError, "nothing is called %s", name);
    }
    tell_if_due();
    Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"prepare", prepare, METH_VARARGS, nullptr},
    {"hook", hook, METH_VARARGS, nullptr},
    {"before_step", before_step, METH_VARARGS, nullptr},
    {"after_step", after_step, METH_VARARGS, nullptr},
    {"collected", collected, METH_VARARGS, nullptr},
    {"open", open, METH_VARARGS, nullptr},
    {"reset", reset, METH_NOARGS, nullptr},
    {"state", state, METH_NOARGS, nullptr},
    {"set_rank", set_rank, METH_VARARGS, nullptr},
    {"set_loader", set_loader, METH_VARARGS, nullptr},
    {"set_samples", set_samples, METH_VARARGS, nullptr},
    {"set_in_process", set_in_process, METH_VARARGS, nullptr},
    {"set_fetch_loader", set_fetch_loader, METH_VARARGS, nullptr},
    {"set_has_optimizer", set_has_optimizer, METH_NOARGS, nullptr},
    {"wake", wake, METH_VARARGS, nullptr},
    {"take_flag", take_flag, METH_VARARGS, nullptr},
    {"set_flag", set_flag, METH_VARARGS, nullptr},
    {"window_until", window_until, METH_NOARGS, nullptr},
    {"put_aside", put_aside, METH_VARARGS, nullptr},
    {"finish", finish, METH_NOARGS, nullptr},
    {"tell", tell, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "_saturate_step",
                          nullptr,
                          -1,
                          functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace
}  // namespace saturate

PyMODINIT_FUNC PyInit__saturate_step() {
    saturate::make_names();
    return PyModule_Create(&saturate::definition);
}
