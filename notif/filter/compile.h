// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/filter.h>

#include <vector>

#include "notif/calls.h"
#include "notif/filter/dispatch.h"

namespace oarlock::filter {

// The filter program of a shape. Its first part, the decision on number and architecture, looks at nothing
// else and ends in a return for each call that needs no arguments, so that the kernel caches those that are
// allowed (5.11); behind it stand the argument rules, each once.
[[nodiscard]] std::vector<sock_filter> Compile(Arch arch, const Shape& shape, Layout layout);

}  // namespace oarlock::filter
