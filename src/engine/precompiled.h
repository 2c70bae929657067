// SPDX-License-Identifier: Apache-2.0
// Precompiled header with the LibTorch headers that the engine's files share. Never include it by
// name: every file includes the narrow headers it uses, and the build adds this one. It has no
// layer headers: they would cost each file three seconds more.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>
