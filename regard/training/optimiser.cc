#include "regard/training/optimiser.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "regard/simd/rows.h"

namespace regard::training {
namespace {

constexpr int64_t kChunk = int64_t{1} << 16;  // elements of one part of an update

struct Part {
  size_t slot;
  int64_t begin, end;
};

}  // namespace

Adam::Adam(std::vector<nn::Parameter> parameters, const AdamOptions& options) : options_(options) {
  for (auto& parameter : parameters) {
    Slot slot;
    slot.first = Tensor::zeros(parameter.value.shape());
    slot.second = Tensor::zeros(parameter.value.shape());
    slot.parameter = std::move(parameter);
    slots_.push_back(std::move(slot));
  }
}

void Adam::sum_shards(Slot& slot, std::span<autograd::Tape* const> shards) {
  const Tensor& value = slot.parameter.value;
  const int64_t width = value.rank() ? value.dim(-1) : 1;
  slot.gradient = Tensor();
  if (slot.table.defined())
    for (int32_t row : slot.touched)
      std::memset(slot.table.data<float>() + row * width, 0, static_cast<size_t>(width) * sizeof(float));
  slot.touched.clear();
  for (autograd::Tape* tape : shards) {
    const auto node = tape->leaf(value);
    if (!node) continue;
    if (node->gradient.defined()) {
      if (slot.gradient.defined())
        simd::add(slot.gradient.data<float>(), node->gradient.data<float>(), slot.gradient.data<float>(),
                  value.size());
      else
        slot.gradient = node->gradient;
    }
  }
  for (autograd::Tape* tape : shards) {
    const auto node = tape->leaf(value);
    if (!node || node->sparse.empty()) continue;
    if (!slot.gradient.defined()) {
      if (!slot.table.defined()) slot.table = Tensor::zeros(value.shape());
      slot.gradient = slot.table;
    }
    const bool in_table = slot.gradient.bytes() == slot.table.bytes();
    for (const auto& part : node->sparse)
      for (size_t i = 0; i < part.ids.size(); ++i) {
        float* const row = slot.gradient.data<float>() + part.ids[i] * width;
        simd::add(row, part.rows.data<float>() + static_cast<int64_t>(i) * width, row, width);
        if (in_table) slot.touched.push_back(part.ids[i]);
      }
  }
  if (!slot.gradient.defined()) {
    if (!slot.table.defined()) slot.table = Tensor::zeros(value.shape());
    slot.gradient = slot.table;
  }
}

double Adam::update(std::span<autograd::Tape* const> shards, double rate, int64_t step, ThreadPool& pool) {
  pool.parallel_for(static_cast<int64_t>(slots_.size()),
                    [&](int64_t i) { sum_shards(slots_[static_cast<size_t>(i)], shards); });
  std::vector<Part> parts;
  for (size_t s = 0; s < slots_.size(); ++s)
    for (int64_t begin = 0; begin < slots_[s].gradient.size(); begin += kChunk)
      parts.push_back({s, begin, std::min(begin + kChunk, slots_[s].gradient.size())});
  std::vector<double> squares(parts.size());
  pool.parallel_for(static_cast<int64_t>(parts.size()), [&](int64_t i) {
    const Part& p = parts[static_cast<size_t>(i)];
    squares[static_cast<size_t>(i)] =
        simd::sum_of_squares(slots_[p.slot].gradient.data<float>() + p.begin, p.end - p.begin);
  });
  double norm = 0;
  for (double s : squares) norm += s;
  norm = std::sqrt(norm);
  const bool finite = std::isfinite(norm);
  const auto t = static_cast<double>(step);
  const simd::AdamStep adam{
      static_cast<float>(rate),
      static_cast<float>(options_.beta1),
      static_cast<float>(options_.beta2),
      static_cast<float>(options_.epsilon),
      static_cast<float>(options_.decay),
      static_cast<float>(1 / (1 - std::pow(options_.beta1, t))),
      static_cast<float>(1 / (1 - std::pow(options_.beta2, t))),
      static_cast<float>(options_.clip > 0 ? std::min(1.0, options_.clip / (norm + 1e-6)) : 1.0)};
  if (finite)
    pool.parallel_for(static_cast<int64_t>(parts.size()), [&](int64_t i) {
      const Part& p = parts[static_cast<size_t>(i)];
      Slot& slot = slots_[p.slot];
      simd::adam(slot.parameter.value.data<float>() + p.begin, slot.gradient.data<float>() + p.begin,
                 slot.first.data<float>() + p.begin, slot.second.data<float>() + p.begin, p.end - p.begin,
                 adam);
    });
  for (Slot& slot : slots_) slot.gradient = Tensor();
  return norm;
}

std::vector<nn::Parameter> Adam::moments() const {
  std::vector<nn::Parameter> list;
  for (const Slot& slot : slots_) {
    list.push_back({"first." + slot.parameter.name, slot.first});
    list.push_back({"second." + slot.parameter.name, slot.second});
  }
  return list;
}

void Adam::load_moments(std::span<const nn::Parameter> moments) {
  std::unordered_map<std::string, Tensor> by_name;
  for (const auto& m : moments) by_name[m.name] = m.value;
  const auto take = [&](const std::string& name, Tensor& into) {
    const auto found = by_name.find(name);
    if (found == by_name.end() || found->second.shape() != into.shape())
      throw DataError("the training state lacks " + name + " " + shape_text(into.shape()));
    into = found->second;
  };
  for (Slot& slot : slots_) {
    take("first." + slot.parameter.name, slot.first);
    take("second." + slot.parameter.name, slot.second);
  }
}

double learning_rate(double peak, int64_t warm_up, int64_t step) {
  const auto s = static_cast<double>(step), w = static_cast<double>(std::max<int64_t>(warm_up, 1));
  return peak * std::min(s / w, std::sqrt(w / s));
}

}  // namespace regard::training
