#pragma once

#include <sys/mman.h>

#include <cstddef>

namespace regard::tests {

/// Memory that takes no room until it is written; no data if the address space lacks it.
struct SparseMemory {
  explicit SparseMemory(size_t floats) : bytes(floats * sizeof(float)) {
    void* const at =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at != MAP_FAILED) data = static_cast<float*>(at);
  }
  SparseMemory(const SparseMemory&) = delete;
  SparseMemory& operator=(const SparseMemory&) = delete;
  ~SparseMemory() {
    if (data) ::munmap(data, bytes);
  }
  size_t bytes;
  float* data = nullptr;
};

}  // namespace regard::tests
