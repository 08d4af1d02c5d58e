#pragma once
// Scratch memory for kernels: aligned, grown on demand, never shrunk.

#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

namespace regard {

/// A buffer of `T` aligned to 64 bytes, without initialisation. Growing loses the content.
template <class T>
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(int64_t size) { grow(size); }
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), capacity_(std::exchange(other.capacity_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~AlignedBuffer() { std::free(data_); }

  /// Makes room for at least `size` elements; the pointer. Throws std::bad_alloc.
  T* grow(int64_t size) {
    if (size > capacity_) {
      std::free(std::exchange(data_, nullptr));
      capacity_ = 0;
      const size_t bytes = (static_cast<size_t>(size) * sizeof(T) + 63) / 64 * 64;
      data_ = static_cast<T*>(std::aligned_alloc(64, bytes));
      if (!data_) throw std::bad_alloc();
      capacity_ = size;
    }
    return data_;
  }
  T* data() const { return data_; }
  int64_t capacity() const { return capacity_; }

 private:
  T* data_ = nullptr;
  int64_t capacity_ = 0;
};

}  // namespace regard
