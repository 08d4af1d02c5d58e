#pragma once

namespace regard::evaluation {

/// What the signatures of the metrics name as their version.
/// It changes when a score would, not with the program's.
inline constexpr const char* kMetricsVersion = "regard-0.1";

}  // namespace regard::evaluation
