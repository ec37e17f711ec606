// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "notif/calls.h"
#include "notif/filter/draft.h"

namespace oarlock::filter {

// Writes the instructions of an argument rule; every path of them ends in a return. libseccomp is not used
// for these: its comparisons are of 64 bits, where the kernel takes most arguments as 32 and a caller may
// fill the rest with anything.
void EmitRule(Draft& draft, const ArgRule& rule);

}  // namespace oarlock::filter
