// SPDX-License-Identifier: Apache-2.0
// Precompiled header with the LibTorch headers that the models share. Never include it by name:
// every file includes the narrow headers it uses, and the build adds this one.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/loss.h>
#include <torch/nn/modules/pooling.h>
#include <torch/nn/modules/rnn.h>
#include <torch/nn/modules/upsampling.h>
#include <torch/types.h>
