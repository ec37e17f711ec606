// SPDX-License-Identifier: Apache-2.0
#include "tests/bypass/bypass.h"

namespace bypass {

std::vector<Row> AllRows() {
  std::vector<Row> all;
  for (const auto& rows : {FilterRows(), InternetRows(), UnixRows(), SupervisorRows(), FileRows(), ExecutionRows(), ProcessRows(), LauncherRows(), EffectRows()})
    all.insert(all.end(), rows.begin(), rows.end());
  std::ranges::sort(all, {}, [](const Row& row) { return std::atoi(row.id + 2); });
  return all;
}

}  // namespace bypass
