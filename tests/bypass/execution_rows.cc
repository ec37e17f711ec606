#include "tests/bypass/bypass.h"
namespace bypass { std::span<const Row> ExecutionRows() { return {}; } }
