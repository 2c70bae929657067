// SPDX-License-Identifier: Apache-2.0
// The headers that every test includes, compiled once for all tests (see src/base/precompiled.h).
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/precompiled.h"
