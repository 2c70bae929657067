// SPDX-License-Identifier: Apache-2.0
// The LibTorch headers that the engine's files share, compiled once. Never included by name: every
// file names the narrow headers it uses, and the build puts this one before them. No layers: they
// would cost each file three seconds more.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>
