#include "regard/decoding/search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "regard/decoding/prompts.h"
#include "regard/simd/rows.h"
#include "regard/text/vocabulary.h"

namespace regard::decoding {
namespace {

struct Candidate {
  double log_probability;
  int32_t token;
  int64_t row;  // of the step's matrices
};

/// A hypothesis that still grows.
struct Live {
  std::vector<int32_t> ids;
  double log_probability = 0;
  std::vector<std::vector<float>> attention;
};

struct Sentence {
  int64_t number = 0;  // among all sources
  int64_t length = 0, limit = 0;
  std::span<const int32_t> prompt;  // what every hypothesis begins with
  std::vector<Live> live{Live{}};
  std::vector<Hypothesis> finished;
  bool done = false;
};

double normalised(double log_probability, size_t tokens, double penalty) {
  return log_probability / std::pow(static_cast<double>(std::max<size_t>(tokens, 1)), penalty);
}

bool better(const Candidate& a, const Candidate& b) {
  if (a.log_probability != b.log_probability) return a.log_probability > b.log_probability;
  if (a.row != b.row) return a.row < b.row;
  return a.token < b.token;
}

/// The `count` best continuations of one row; the begin symbol is never one. Blocks whose largest logit
/// cannot enter the list are passed over.
void add_candidates(const float* logits, int64_t V, double log_probability, int64_t row, int64_t count,
                    std::vector<Candidate>& into) {
  constexpr int64_t kBlock = 256;
  const double lse = static_cast<double>(simd::log_sum_exp(logits, V));
  std::vector<Candidate> best;
  float smallest = -std::numeric_limits<float>::infinity();  // logit that has to be exceeded
  for (int64_t begin = 0; begin < V - 1; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, V - 1);
    const bool full = static_cast<int64_t>(best.size()) == count;
    if (full && !(simd::largest(logits + begin, end - begin) > smallest)) continue;
    for (int64_t v = begin; v < end; ++v) {
      if (static_cast<int64_t>(best.size()) == count) {
        if (!(logits[v] > smallest)) continue;
        best.pop_back();
      }
      const Candidate c{log_probability + (static_cast<double>(logits[v]) - lse), static_cast<int32_t>(v),
                        row};
      best.insert(std::upper_bound(best.begin(), best.end(), c, better), c);
      smallest = logits[best.back().token];
    }
  }
  into.insert(into.end(), best.begin(), best.end());
}

/// What would write three tokens in a row a second time.
std::vector<int32_t> repeating(const std::vector<int32_t>& ids) {
  std::vector<int32_t> tokens;
  const size_t n = ids.size();
  for (size_t i = 2; i < n; ++i)
    if (ids[i - 2] == ids[n - 2] && ids[i - 1] == ids[n - 1]) tokens.push_back(ids[i]);
  return tokens;
}

/// The continuations of one hypothesis that are looked at, from its row of logits.
void add_continuations(const float* logits, int64_t V, const Live& live, int64_t row,
                       const SearchOptions& options, std::vector<Candidate>& into) {
  const int64_t count = 2 * options.beam;
  const std::vector<int32_t> banned =
      options.no_repeat_trigrams ? repeating(live.ids) : std::vector<int32_t>();
  const auto first = static_cast<std::ptrdiff_t>(into.size());
  add_candidates(logits, V, live.log_probability, row, count + static_cast<int64_t>(banned.size()), into);
  if (banned.empty()) return;
  const auto is_banned = [&](const Candidate& c) {
    return std::find(banned.begin(), banned.end(), c.token) != banned.end();
  };
  into.erase(std::remove_if(into.begin() + first, into.end(), is_banned), into.end());
}

Hypothesis finish(const Live& live, double log_probability, size_t tokens, bool complete,
                  const SearchOptions& options) {
  return {live.ids, normalised(log_probability, tokens, options.length_penalty), complete, live.attention};
}

/// Moves a sentence one token on, given its rows of the step's result. `kept` receives the row of every new
/// live one.
void advance(Sentence& sentence, std::vector<Candidate> candidates, const models::Step& step,
             int64_t first_row, const SearchOptions& options, std::vector<int32_t>& kept) {
  std::sort(candidates.begin(), candidates.end(), better);
  const auto alpha = step.alpha.defined() ? step.alpha.as_matrix<float>() : MatrixView<float>{};
  std::vector<Live> next;
  const auto open = [&] { return options.beam - static_cast<int64_t>(sentence.finished.size()); };
  for (const Candidate& c : candidates) {
    if (static_cast<int64_t>(next.size()) >= open()) break;
    Live live = sentence.live[static_cast<size_t>(c.row - first_row)];
    if (alpha.data) live.attention.emplace_back(alpha.row(c.row), alpha.row(c.row) + sentence.length);
    if (c.token == text::Vocabulary::kEnd) {
      sentence.finished.push_back(
          finish(live, c.log_probability, live.ids.size() + 1 - sentence.prompt.size(), true, options));
      continue;
    }
    live.ids.push_back(c.token);
    live.log_probability = c.log_probability;
    next.push_back(std::move(live));
    kept.push_back(static_cast<int32_t>(c.row));
  }
  while (static_cast<int64_t>(next.size()) > std::max<int64_t>(open(), 0)) {
    next.pop_back();
    kept.pop_back();
  }
  if (!next.empty() && static_cast<int64_t>(next[0].ids.size()) >= sentence.limit) {
    for (const Live& live : next)
      sentence.finished.push_back(
          finish(live, live.log_probability, live.ids.size() - sentence.prompt.size(), false, options));
    kept.resize(kept.size() - next.size());
    next.clear();
  }
  sentence.live = std::move(next);
  sentence.done = sentence.live.empty();
}

/// Sentences that go through the decoder together: as many as options say, fewer if their hypotheses may grow
/// so long that what a model keeps of every position (a Transformer's keys and values) would fill the memory.
std::vector<std::span<Sentence>> grouped(std::span<Sentence> sentences, const SearchOptions& options) {
  constexpr int64_t kPositions = 1 << 15;
  const size_t most = static_cast<size_t>(std::max<int64_t>(options.sentences, 1));
  std::vector<std::span<Sentence>> groups;
  for (size_t begin = 0, end = 0; begin < sentences.size(); begin = end) {
    int64_t positions = 0;
    for (; end < sentences.size() && end - begin < most; ++end) {
      positions += options.beam * sentences[end].limit;
      if (end > begin && positions > kPositions) break;
    }
    groups.push_back(sentences.subspan(begin, end - begin));
  }
  return groups;
}

void search_group(const models::EncoderDecoder& model, std::span<const std::span<const int32_t>> sources,
                  std::span<Sentence> group, const SearchOptions& options) {
  std::vector<std::span<const int32_t>> inputs;
  for (const Sentence& s : group) inputs.push_back(sources[static_cast<size_t>(s.number)]);
  const models::Memory memory = model.encode(inputs);
  models::State state = memory.initial_state;
  if (!model.attends()) {  // else each step's attention is wanted
    std::vector<std::span<const int32_t>> prompts;
    for (const Sentence& sentence : group) prompts.push_back(sentence.prompt);
    ReadPrompts start = read_prompts(model, prompts, memory);
    state = std::move(start.state);
    for (Sentence& sentence : group)
      sentence.live[0].ids.assign(sentence.prompt.begin(),
                                  sentence.prompt.begin() + static_cast<std::ptrdiff_t>(start.read));
  }
  std::vector<int32_t> sentence_of(group.size());
  std::iota(sentence_of.begin(), sentence_of.end(), 0);
  while (!sentence_of.empty()) {
    std::vector<int32_t> y_prev;
    for (const Sentence& sentence : group)
      for (const Live& live : sentence.live)
        y_prev.push_back(live.ids.empty() ? model.begin() : live.ids.back());
    const models::Step step = model.step(y_prev, state, memory, sentence_of);
    const auto logits = step.logits.as_matrix<float>();
    std::vector<int32_t> kept, next_sentence_of;
    int64_t row = 0;
    for (size_t g = 0; g < group.size(); ++g) {
      Sentence& sentence = group[g];
      if (sentence.done) continue;
      const int64_t first_row = row;
      std::vector<Candidate> candidates;
      for (const Live& live : sentence.live) {
        if (live.ids.size() < sentence.prompt.size())
          candidates.push_back({live.log_probability, sentence.prompt[live.ids.size()], row});
        else
          add_continuations(logits.row(row), logits.columns, live, row, options, candidates);
        ++row;
      }
      advance(sentence, std::move(candidates), step, first_row, options, kept);
      next_sentence_of.resize(kept.size(), static_cast<int32_t>(g));
    }
    state = models::select(step.state, kept);
    sentence_of = std::move(next_sentence_of);
  }
}

}  // namespace

std::vector<std::vector<Hypothesis>> search(const models::EncoderDecoder& model,
                                            std::span<const std::span<const int32_t>> sources,
                                            const SearchOptions& options, ThreadPool& pool,
                                            const autograd::FrozenWeights* frozen,
                                            std::span<const std::span<const int32_t>> prompts) {
  if (options.beam < 1)
    throw UsageError("beam size " + std::to_string(options.beam) + ", expected at least 1");
  if (!prompts.empty() && prompts.size() != sources.size())
    throw UsageError(std::to_string(prompts.size()) + " prompts for " + std::to_string(sources.size()) +
                     " sentences");
  std::vector<int64_t> order(sources.size());
  std::iota(order.begin(), order.end(), 0);
  const auto length = [&](int64_t i) { return static_cast<int64_t>(sources[static_cast<size_t>(i)].size()); };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return length(a) > length(b); });
  std::vector<Sentence> sentences;
  for (const int64_t number : order) {
    Sentence sentence;
    sentence.number = number;
    sentence.length = length(number);
    sentence.limit = options.max_length > 0 ? options.max_length : 2 * sentence.length + 10;
    if (!prompts.empty()) sentence.prompt = prompts[static_cast<size_t>(number)];
    sentence.limit += static_cast<int64_t>(sentence.prompt.size());
    sentences.push_back(std::move(sentence));
  }
  const std::vector<std::span<Sentence>> groups = grouped(sentences, options);
  std::vector<std::vector<Hypothesis>> results(sources.size());
  std::optional<autograd::FrozenWeights> own;
  if (!frozen) frozen = &own.emplace(models::tensors_of(model));
  pool.parallel_for(static_cast<int64_t>(groups.size()), [&](int64_t g) {
    const autograd::FrozenWeights::Use use(*frozen);
    const std::span<Sentence> group = groups[static_cast<size_t>(g)];
    search_group(model, sources, group, options);
    for (Sentence& sentence : group) {
      std::stable_sort(sentence.finished.begin(), sentence.finished.end(),
                       [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
      results[static_cast<size_t>(sentence.number)] = std::move(sentence.finished);
    }
  });
  return results;
}

}  // namespace regard::decoding
