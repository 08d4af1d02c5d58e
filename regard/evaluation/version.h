#pragma once

namespace regard::evaluation {

/// What the signatures of the metrics name as their version.
inline constexpr const char* kMetricsVersion = "regard-0.1";

}  // namespace regard::evaluation
