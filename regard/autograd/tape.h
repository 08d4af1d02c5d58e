#pragma once
// The tape: what was computed, in order, and how to go back. Reverse-mode differentiation
// (Griewank and Walther 2008, "Evaluating derivatives", section 3.2).

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "regard/tensor/tensor.h"

namespace regard::autograd {

/// Rows of a table's gradient: row ids[i] of the table receives rows[i].
struct SparseRows {
  std::vector<int32_t> ids;
  Tensor rows;  // [ids.size(), D]
};

/// A place on the tape: one value whose gradient is collected.
struct Node {
  Shape shape;
  DType dtype = DType::f32;
  Tensor gradient;                 ///< undefined until something contributes
  std::vector<SparseRows> sparse;  ///< contributions to single rows (tables only)
  bool leaf = false;
  std::function<void(const Tensor& gradient)> backward;

  /// Calls write(gradient tensor, add): with `add` the contribution is added, else it is the first and is
  /// stored.
  template <class Write>
  void contribute(Write&& write) {
    const bool add = gradient.defined();
    if (!add) gradient = Tensor::empty(shape, dtype);
    write(gradient, add);
  }
};

class Tape;

/// One differentiable operation. Its samples are what the gradient registry checks it with: inputs in f64 and
/// a function of them that returns any tensor. An operation cannot be defined without samples.
class Operation {
 public:
  struct Sample {
    std::string name;
    std::vector<Tensor> inputs;  ///< f64; each is differentiated
    std::function<Tensor(std::span<const Tensor>)> compute;
  };
  Operation(const char* name, std::function<std::vector<Sample>()> samples)
      : name_(name), samples_(std::move(samples)) {}
  const char* name() const { return name_; }
  std::vector<Sample> samples() const { return samples_(); }

 private:
  const char* name_;
  std::function<std::vector<Sample>()> samples_;
};

/// Records the operations of one thread between its Recording's beginning and end. Not shared between
/// threads.
class Tape {
 public:
  Tape() = default;
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// Makes a tape the calling thread's current one for as long as it lives.
  class Recording {
   public:
    explicit Recording(Tape& tape);
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;
    ~Recording();

   private:
    Tape* outer_;
  };
  static Tape* current();

  /// From now on the tensor's storage counts as a leaf whose gradient is wanted.
  void watch(const Tensor& leaf);
  /// Runs the tape backward from a scalar. Gradients of leaves stay, everything else is released on the way.
  void backward(const Tensor& loss);
  /// The leaf's node, null if it is not watched.
  std::shared_ptr<Node> leaf(const Tensor& tensor) const;

 private:
  friend Tensor record(const Operation&, Tensor, std::function<void(const Tensor&)>);
  std::vector<std::shared_ptr<Node>> nodes_;
  std::unordered_map<const void*, std::shared_ptr<Node>> leaves_;
};

/// The node of an operand on the current tape: null when no gradient is wanted for it.
std::shared_ptr<Node> input(const Tensor& operand);

/// Puts an operation's result on the current tape. Call only if some input has a node.
Tensor record(const Operation& operation, Tensor result,
              std::function<void(const Tensor& gradient)> backward);

/// Every operation of regard/autograd: the registry that one test walks.
std::vector<const Operation*> all_operations();

}  // namespace regard::autograd
