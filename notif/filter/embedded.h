// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/filter.h>

#include <cstdint>

#include "notif/calls.h"

// What the generator writes: all programs of an architecture one after the other, by ShapeIndex, and where
// each begins. The product has its own architecture's alone; the tests have both.
namespace oarlock::filter {

extern const sock_filter kInstructionsX86_64[];
extern const uint32_t kStartsX86_64[kShapeCount + 1];
extern const sock_filter kInstructionsAarch64[];
extern const uint32_t kStartsAarch64[kShapeCount + 1];

}  // namespace oarlock::filter
