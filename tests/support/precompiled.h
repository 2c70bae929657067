// SPDX-License-Identifier: Apache-2.0
// What every test includes, compiled once for all of them (src/base/precompiled.h says more).
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/precompiled.h"
