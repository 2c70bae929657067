// SPDX-License-Identifier: Apache-2.0
#include "hooks.h"

namespace saturate {

Steps steps;
Fetches fetches;
TickClock tick_clock;
Calls calls;
HookState hook_state;

namespace {

struct AttributeNames {
    PyObject *id, *ended, *size, *is_cuda, *device, *type, *item, *zero;
} names;

// Keeps the script's own error, whatever is raised meanwhile.
class KeepError {
  public:
    KeepError() { PyErr_Fetch(&type_, &value_, &trace_); }
    ~KeepError() { PyErr_Restore(type_, value_, trace_); }
    KeepError(const KeepError&) = delete;
    KeepError& operator=(const KeepError&) = delete;

  private:
    PyObject *type_, *value_, *trace_;
};

std::int64_t clock_ns() { return tick_clock.now(); }
bool is_own_thread() { return steps.is_own_thread(); }

// An error of our own ends the watching, never the script.
void disable(const char* where) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (calls.disable && value) {
        PyObject* name = PyUnicode_FromString(where);
        Py_XDECREF(PyObject_CallFunctionObjArgs(calls.disable, name, value, nullptr));
        Py_XDECREF(name);
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    PyErr_Clear();
}

// ---- the loader

constexpr int kLoaders = 2;  // torch's and saturate_gpu's
PyObject* old_nexts[kLoaders];

// The first dimension of the first tensor in a batch; 0 if there is none.
std::uint32_t size_of(PyObject* data, int depth = 3) {
    PyObject* first = nullptr;
    if (PyList_Check(data)) {
        if (PyList_Size(data) > 0) first = PyList_GetItem(data, 0);
    } else if (PyTuple_Check(data)) {
        if (PyTuple_Size(data) > 0) first = PyTuple_GetItem(data, 0);
    } else if (PyDict_Check(data)) {
        Py_ssize_t at = 0;
        PyObject* key;
        if (!PyDict_Next(data, &at, &key, &first)) first = nullptr;
    } else if (PyObject_TypeCheck(data, hook_state.tensor)) {
        PyObject* size = PyObject_CallMethodObjArgs(data, names.size, names.zero, nullptr);
        long value = size ? PyLong_AsLong(size) : -1;
        Py_XDECREF(size);
        if (value < 0) PyErr_Clear();  // a scalar has no size
        return value < 0 ? 0 : static_cast<std::uint32_t>(value);
    }
    return first && depth > 0 ? size_of(first, depth - 1) : 0;
}

// Measuring a tensor takes 2 us, so only the first batches, every 16th, and the last one, which may
// be smaller, are measured.
std::uint32_t samples_of(PyObject* data, std::int64_t owner) {
    if (owner < 0 || owner >= 256) return size_of(data);
    LoaderFacts& loader = hook_state.loaders[owner];
    std::int64_t number = ++loader.given;
    bool is_like_last = loader.batch_size > 0 && number > 2 && number < loader.batches;
    if (is_like_last && number % 16 != 0 && loader.samples > 0) return loader.samples;
    std::uint32_t size = size_of(data);
    if (size == 0) size = loader.batch_size;
    loader.samples = size == 1 ? loader.ready_made : size;
    return loader.samples;
}

std::int64_t loader_of(PyObject* iterator) {
    if (iterator == hook_state.iterator) return hook_state.iterator_loader;
    PyObject* number = PyObject_GetAttr(iterator, names.id);
    long value = number ? PyLong_AsLong(number) : 0;
    Py_XDECREF(number);
    if (PyErr_Occurred()) PyErr_Clear();
    hook_state.iterator = iterator;
    hook_state.iterator_loader = value;
    return value;
}

template <int kind>
PyObject* next(PyObject* self, PyObject*) {
    PyObject* old_next = old_nexts[kind];
    if (!is_own_thread() || !is_open())
        return PyObject_CallFunctionObjArgs(old_next, self, nullptr);
    std::int64_t asked_at = clock_ns();
    std::int64_t owner = loader_of(self);
    steps.asked(owner, asked_at);
    bool in_process = owner >= 0 && owner < 256 && hook_state.loaders[owner].in_process;
    if (in_process && !fetches.is_open()) fetches.open(steps.bytes(), 0);
    Fetches::Began began;
    if (in_process) began = fetches.begin(asked_at);
    // Do not count our own time in any step.
    if (tell_if_due() || began.is_close) began.wall = asked_at = clock_ns();
    PyObject* data = PyObject_CallFunctionObjArgs(old_next, self, nullptr);
    if (!data) {
        if (!PyErr_ExceptionMatches(PyExc_StopIteration)) return nullptr;
        KeepError error;
        steps.ended(owner, asked_at, clock_ns());
        if (PyObject_SetAttr(self, names.ended, Py_True) != 0) PyErr_Clear();
        tell_if_due();
        return nullptr;
    }
    std::int64_t now = clock_ns();
    // The loader may have got workers meanwhile.
    if (in_process && hook_state.loaders[owner].in_process) fetches.end(began, now, owner);
    steps.got(owner, asked_at, now, samples_of(data, owner));
    return data;
}

// ---- the data set in workers

constexpr int kFetchers = 2;
PyObject* old_fetches[kFetchers];

bool open_fetches() {
    PyObject* target = PyObject_CallFunctionObjArgs(calls.fetch, nullptr);
    const char* path = nullptr;
    int worker = 0;
    bool is_told = target && PyArg_ParseTuple(target, "zi", &path, &worker);
    unsigned char* bytes = nullptr;
    if (is_told && path) bytes = map_ring(path);
    if (bytes) fetches.open(bytes, worker);
    Py_XDECREF(target);
    PyErr_Clear();
    return bytes != nullptr;
}

template <int kind>
PyObject* fetch(PyObject* self, PyObject* indices) {
    PyObject* old = old_fetches[kind];
    // A worker still has to work without a ring.
    if (!fetches.is_off() && !fetches.is_open() && !open_fetches()) fetches.turn_off();
    if (fetches.is_off()) return PyObject_CallFunctionObjArgs(old, self, indices, nullptr);
    Fetches::Began began = fetches.begin(clock_ns());
    PyObject* data = PyObject_CallFunctionObjArgs(old, self, indices, nullptr);
    if (data) fetches.end(began, clock_ns(), fetches.loader());
    return data;
}

// ---- optimizers

constexpr int kKnown = 16;
PyObject* known_optimizers[kKnown];  // borrowed, only compared
int known_count = 0;
std::int64_t step_began = 0, collection_began = 0;

bool is_known(PyObject* optimizer) {
    for (int i = 0; i < kKnown; ++i)
        if (known_optimizers[i] == optimizer) return true;
    known_optimizers[known_count++ % kKnown] = optimizer;
    return false;
}

// Calls old(self, *args, **kwargs).
PyObject* forward(PyObject* old, PyObject* self, PyObject* args, PyObject* kwargs) {
    Py_ssize_t count = PyTuple_Size(args);
    if (count == 0 && !kwargs) return PyObject_CallFunctionObjArgs(old, self, nullptr);
    PyObject* all = PyTuple_New(count + 1);
    if (!all) return nullptr;
    Py_INCREF(self);
    PyTuple_SetItem(all, 0, self);
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject* item = PyTuple_GetItem(args, i);
        Py_INCREF(item);
        PyTuple_SetItem(all, i + 1, item);
    }
    PyObject* result = PyObject_Call(old, all, kwargs);
    Py_DECREF(all);
    return result;
}

PyObject* old_zero_grad = nullptr;
int zero_grad_drops = 1;  // whether gradients become None if the script does not say
constexpr long long kEnoughZeroGrads = 32;

PyObject* zero_grad(PyObject* self, PyObject* args, PyObject* kwargs) {
    PyObject* given = PyTuple_Size(args) > 0 ? PyTuple_GetItem(args, 0)
                      : kwargs               ? PyDict_GetItemString(kwargs, "set_to_none")
                                             : nullptr;
    int to_none = given ? PyObject_IsTrue(given) : zero_grad_drops;
    if (to_none < 0) return nullptr;
    if (to_none == 0 && hook_state.zero_grads[0] == 0) {
        PyObject* done = PyObject_CallFunctionObjArgs(calls.zero_grad, nullptr);
        if (!done) disable("zero_grad");
        Py_XDECREF(done);
    }
    ++hook_state.zero_grads[to_none];
    if (hook_state.zero_grads[0] + hook_state.zero_grads[1] == kEnoughZeroGrads) {
        PyObject* done = PyObject_CallFunctionObjArgs(calls.enough, nullptr);
        if (!done) disable("zero_grad");
        Py_XDECREF(done);
    }
    return forward(old_zero_grad, self, args, kwargs);
}

// ---- backward

PyObject* old_backward = nullptr;

bool has_flag(PyObject* tensor, PyObject* name) {
    PyObject* answer = PyObject_GetAttr(tensor, name);
    bool is_set = answer == Py_True;
    Py_XDECREF(answer);
    if (!answer) PyErr_Clear();
    return is_set;
}

// By the name of the device: is_cpu came with PyTorch 2.0.
bool is_on_cpu(PyObject* tensor) {
    PyObject* device = PyObject_GetAttr(tensor, names.device);
    PyObject* type = device ? PyObject_GetAttr(device, names.type) : nullptr;
    bool is_cpu =
        type && PyUnicode_Check(type) && PyUnicode_CompareWithASCIIString(type, "cpu") == 0;
    Py_XDECREF(type);
    Py_XDECREF(device);
    if (!type) PyErr_Clear();
    return is_cpu;
}

// Takes the loss. On a CPU its value is there and costs nothing; on a device nothing here waits for
// it. Only for plain tensors: on other types item() may be a collective.
void take_loss(PyObject* tensor) {
    Py_XDECREF(hook_state.root);
    hook_state.root = PyWeakref_NewRef(tensor, nullptr);
    hook_state.is_loss_known = false;
    PyErr_Clear();
    if (reinterpret_cast<PyObject*>(Py_TYPE(tensor)) !=
        reinterpret_cast<PyObject*>(hook_state.tensor))
        return;
    if (!hook_state.reads_wait_always && is_on_cpu(tensor)) {
        hook_state.is_reading = true;  // the following read is ours
        PyObject* value = PyObject_CallMethodObjArgs(tensor, names.item, nullptr);
        hook_state.is_reading = false;
        if (value && PyFloat_Check(value)) {
            steps.loss_known(PyFloat_AsDouble(value));
            hook_state.is_loss_known = true;
        }
        Py_XDECREF(value);
        PyErr_Clear();  // not a single number
    } else if (calls.loss != Py_None) {
        PyObject* done = PyObject_CallFunctionObjArgs(calls.loss, tensor, nullptr);
        if (!done) disable("losses");
        Py_XDECREF(done);
    }
}

PyObject* backward(PyObject*, PyObject* args, PyObject* kwargs) {
    // Without an optimizer of torch, a backward pass is the sign that a thread trains.
    bool is_ours = is_own_thread() || (!steps.has_optimizer && !hook_state.is_in_backward &&
                                       steps.adopt_thread(clock_ns()));
    if (hook_state.is_in_backward || !is_ours || !is_open())
        return PyObject_Call(old_backward, args, kwargs);
    hook_state.is_in_backward = true;
    std::int64_t began = clock_ns();
    PyObject* result = PyObject_Call(old_backward, args, kwargs);
    hook_state.is_in_backward = false;
    std::int64_t now = clock_ns();
    KeepError error;
    if (!result) return nullptr;  // it raised: there are no gradients
    PyObject* root = PyTuple_Size(args) > 0 ? PyTuple_GetItem(args, 0)
                     : kwargs               ? PyDict_GetItemString(kwargs, "tensors")
                                            : nullptr;
    if (root && PyTuple_Check(root) && PyTuple_Size(root) == 1) root = PyTuple_GetItem(root, 0);
    if (root) take_loss(root);
    steps.backward_done(now - began, now);
    tell_if_due();
    return result;
}

// ---- reads of tensors

constexpr int kReads = 8;
constexpr const char* kReadNames[kReads] = {"item",    "tolist",   "numpy",     "cpu",
                                            "nonzero", "__bool__", "__float__", "__int__"};
PyObject* old_reads[kReads];
PyObject* read_names[kReads];

bool waits(PyObject* tensor) {
    return hook_state.reads_wait_always || has_flag(tensor, names.is_cuda);
}

bool is_loss(PyObject* tensor) {
    if (!hook_state.root) return false;
    PyObject* root = PyObject_CallFunctionObjArgs(hook_state.root, nullptr);
    Py_XDECREF(root);
    return root == tensor;
}

template <int which>
PyObject* read(PyObject* self, PyObject* args, PyObject* kwargs) {
    // A read may call other reads; only the outermost is the script's.
    if (!is_own_thread() || hook_state.is_reading)
        return forward(old_reads[which], self, args, kwargs);
    bool does_wait = waits(self);
    hook_state.is_reading = true;
    std::int64_t began = clock_ns();
    PyObject* result = forward(old_reads[which], self, args, kwargs);
    std::int64_t took = clock_ns() - began;
    hook_state.is_reading = false;
    if (!result) return nullptr;
    if (does_wait) steps.waited_for_device(took);
    bool is_root = is_loss(self);
    if (is_root && !hook_state.is_loss_known && PyFloat_Check(result)) {
        hook_state.is_loss_known = true;
        steps.loss_read(PyFloat_AsDouble(result));
    }
    PyObject* ns = PyLong_FromLongLong(took);
    PyObject* done = PyObject_CallFunctionObjArgs(calls.read, read_names[which], ns,
                                                  does_wait ? Py_True : Py_False,
                                                  is_root ? Py_True : Py_False, result, nullptr);
    Py_XDECREF(ns);
    if (!done) disable("reads");
    Py_XDECREF(done);
    return result;
}

// ---- making the hooks

template <typename Function>
constexpr PyCFunction plain(Function* function) {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

constexpr int kWithWords = METH_VARARGS | METH_KEYWORDS;
PyMethodDef next_methods[kLoaders] = {{"__next__", next<0>, METH_NOARGS, nullptr},
                                      {"__next__", next<1>, METH_NOARGS, nullptr}};
PyMethodDef fetch_methods[kFetchers] = {{"fetch", fetch<0>, METH_O, nullptr},
                                        {"fetch", fetch<1>, METH_O, nullptr}};
PyMethodDef zero_grad_methods[2] = {
    {"zero_grad", plain(zero_grad), kWithWords, "zero_grad($self, set_to_none=False)\n--\n\n"},
    {"zero_grad", plain(zero_grad), kWithWords, "zero_grad($self, set_to_none=True)\n--\n\n"}};
PyMethodDef backward_function = {"backward", plain(backward), kWithWords, nullptr};
PyMethodDef read_methods[kReads] = {
    {"item", plain(read<0>), kWithWords, nullptr},
    {"tolist", plain(read<1>), kWithWords, nullptr},
    {"numpy", plain(read<2>), kWithWords, nullptr},
    {"cpu", plain(read<3>), kWithWords, nullptr},
    {"nonzero", plain(read<4>), kWithWords, nullptr},
    {"__bool__", plain(read<5>), kWithWords, nullptr},
    {"__float__", plain(read<6>), kWithWords, nullptr},
    {"__int__", plain(read<7>), kWithWords, nullptr},
};

PyObject* keep(PyObject*& slot, PyObject* value) {
    Py_INCREF(value);
    slot = value;
    return value;
}

}  // namespace

void make_names() {
    names.id = PyUnicode_InternFromString("_saturate_id");
    names.ended = PyUnicode_InternFromString("_saturate_ended");
    names.size = PyUnicode_InternFromString("size");
    names.is_cuda = PyUnicode_InternFromString("is_cuda");
    names.device = PyUnicode_InternFromString("device");
    names.type = PyUnicode_InternFromString("type");
    names.item = PyUnicode_InternFromString("item");
    names.zero = PyLong_FromLong(0);
    tick_clock.begin();
}

bool is_open() {
    if (steps.bytes()) return true;
    PyObject* done = PyObject_CallFunctionObjArgs(calls.open, nullptr);
    if (!done) disable("ring");
    Py_XDECREF(done);
    return steps.bytes() != nullptr;
}

bool tell_if_due() {
    if (!steps.take_due()) return false;
    PyObject* done =
        PyObject_CallFunction(calls.step, "LL", static_cast<long long>(steps.training()),
                              static_cast<long long>(steps.ended_at()));
    if (!done) disable("step");
    Py_XDECREF(done);
    return true;
}

PyObject* before_step(PyObject*, PyObject*) {
    std::int64_t now = clock_ns();
    if (is_own_thread() || steps.adopt_thread(now)) step_began = now;
    Py_RETURN_NONE;
}

PyObject* after_step(PyObject*, PyObject* args) {
    if (!is_own_thread() || PyTuple_Size(args) < 1 || !is_open()) Py_RETURN_NONE;
    std::int64_t now = clock_ns();
    PyObject* optimizer = PyTuple_GetItem(args, 0);
    steps.optimizer_stepped(optimizer, now - step_began, now);
    if (!is_known(optimizer)) {
        PyObject* done = PyObject_CallFunctionObjArgs(calls.optimizer, optimizer, nullptr);
        if (!done) disable("optimizer");
        Py_XDECREF(done);
    }
    tell_if_due();
    Py_RETURN_NONE;
}

PyObject* collected(PyObject*, PyObject* args) {
    PyObject* phase = PyTuple_Size(args) > 0 ? PyTuple_GetItem(args, 0) : nullptr;
    if (phase && PyUnicode_CompareWithASCIIString(phase, "start") == 0)
        collection_began = clock_ns();
    else
        steps.collected(clock_ns() - collection_began);
    Py_RETURN_NONE;
}

PyObject* hook(PyObject*, PyObject* args) {
    const char* name;
    PyObject *owner, *old;
    int number = 0;
    if (!PyArg_ParseTuple(args, "sOO|i", &name, &owner, &old, &number)) return nullptr;
    PyObject* text = PyUnicode_FromString(name);
    auto is = [&](const char* other) { return PyUnicode_CompareWithASCIIString(text, other) == 0; };
    PyMethodDef* method = nullptr;
    if (is("__next__") && number >= 0 && number < kLoaders) {
        keep(old_nexts[number], old);
        method = &next_methods[number];
    } else if (is("fetch") && number >= 0 && number < kFetchers) {
        keep(old_fetches[number], old);
        method = &fetch_methods[number];
    } else if (is("zero_grad")) {
        keep(old_zero_grad, old);
        zero_grad_drops = number != 0;
        method = &zero_grad_methods[zero_grad_drops];
    } else if (is("backward")) {
        keep(old_backward, old);
        Py_DECREF(text);
        return PyCFunction_NewEx(&backward_function, nullptr, nullptr);
    }
    for (int i = 0; i < kReads && !method; ++i) {
        if (!is(kReadNames[i])) continue;
        keep(old_reads[i], old);
        keep(read_names[i], text);
        method = &read_methods[i];
    }
    Py_DECREF(text);
    if (!method) return PyErr_Format(PyExc_ValueError, "no hook %s", name);
    return PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(owner), method);
}

}  // namespace saturate
