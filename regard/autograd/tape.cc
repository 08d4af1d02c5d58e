#include "regard/autograd/tape.h"

#include <utility>

namespace regard::autograd {
namespace {
thread_local Tape* current_tape = nullptr;
}

Tape::Recording::Recording(Tape& tape) : outer_(std::exchange(current_tape, &tape)) {}
Tape::Recording::~Recording() { current_tape = outer_; }
Tape* Tape::current() { return current_tape; }

void Tape::watch(const Tensor& leaf) {
  auto node = std::make_shared<Node>();
  node->shape = leaf.shape();
  node->dtype = leaf.dtype();
  node->leaf = true;
  leaves_[leaf.bytes()] = std::move(node);
}

std::shared_ptr<Node> Tape::leaf(const Tensor& tensor) const {
  const auto found = leaves_.find(tensor.bytes());
  return found == leaves_.end() || found->second->shape != tensor.shape() ? nullptr : found->second;
}

void Tape::backward(const Tensor& loss) {
  if (loss.size() != 1)
    throw ShapeError("[backward] loss " + shape_text(loss.shape()) + ", expected one number");
  if (!loss.node())
    throw Error(ErrorKind::internal, "[backward] the loss depends on nothing that is watched");
  loss.node()->gradient = Tensor::full(loss.shape(), 1.0, loss.dtype());
  while (!nodes_.empty()) {
    const auto node = std::move(nodes_.back());
    nodes_.pop_back();
    if (node->gradient.defined() && node->backward) node->backward(node->gradient);
    node->backward = nullptr;
    node->gradient = Tensor();
  }
}

std::shared_ptr<Node> input(const Tensor& operand) {
  if (operand.node()) return operand.node();
  return current_tape && operand.defined() ? current_tape->leaf(operand) : nullptr;
}

Tensor record(const Operation&, Tensor result, std::function<void(const Tensor&)> backward) {
  if (!current_tape) throw Error(ErrorKind::internal, "[record] no tape is recording on this thread");
  auto node = std::make_shared<Node>();
  node->shape = result.shape();
  node->dtype = result.dtype();
  node->backward = std::move(backward);
  current_tape->nodes_.push_back(node);
  return result.with_node(std::move(node));
}

}  // namespace regard::autograd
