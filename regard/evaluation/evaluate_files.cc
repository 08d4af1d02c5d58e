#include "regard/evaluation/evaluate_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <functional>
#include <optional>
#include <utility>

#include "regard/base/error.h"
#include "regard/base/file.h"
#include "regard/evaluation/accuracy.h"
#include "regard/evaluation/alignment_error.h"
#include "regard/evaluation/bleu.h"
#include "regard/evaluation/chrf.h"
#include "regard/evaluation/rouge.h"
#include "regard/evaluation/version.h"
#include "regard/text/utf8.h"

namespace regard::evaluation {
namespace {

using Lines = std::vector<std::string>;

// One metric in each form: a line, JSON, and the numbers that stand in a table.
struct Result {
  struct Column {
    const char* name;
    double score;
  };
  std::string text;
  boost::json::object json;
  std::vector<Column> columns;
};

Lines read_lines(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  Lines lines;
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t end = std::min(bytes.find('\n', begin), bytes.size());
    std::string line = bytes.substr(begin, end - begin);
    if (end < bytes.size() && !line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(std::move(line));
    if (text::invalid_utf8(lines.back()) != std::string::npos) {
      throw DataError(path.string(), static_cast<int64_t>(lines.size()),
                      "is not UTF-8; convert the file first, for example with iconv");
    }
    begin = end + 1;
  }
  if (lines.empty()) throw DataError(path.string(), 0, "has no lines; there is nothing to score");
  return lines;
}

void check_equal_lines(const std::filesystem::path& a, size_t lines_a, const std::filesystem::path& b,
                       size_t lines_b) {
  if (lines_a == lines_b) return;
  throw DataError(a.string(), 0,
                  fmt::format("has {} lines, but {} has {}; line N of one belongs to line N of the other",
                              lines_a, b.string(), lines_b));
}

Result bleu_result(const Lines& hypothesis, const std::vector<Lines>& references, Tokenization tokenization) {
  const Bleu bleu = corpus_bleu(hypothesis, references, tokenization);
  const BleuStatistics& statistics = bleu.statistics;
  boost::json::object json{{"score", bleu.score},
                           {"signature", bleu.signature},
                           {"precisions", boost::json::value_from(bleu.precisions)},
                           {"counts", boost::json::value_from(statistics.counts)},
                           {"totals", boost::json::value_from(statistics.totals)},
                           {"bp", bleu.brevity_penalty},
                           {"sys_len", statistics.hypothesis_length},
                           {"ref_len", statistics.reference_length}};
  return {fmt::format("BLEU = {:.2f} ({})\n", bleu.score, bleu.signature),
          std::move(json),
          {{"BLEU", bleu.score}}};
}

Result chrf_result(const Lines& hypothesis, const std::vector<Lines>& references, ChrfKind kind) {
  const Chrf chrf = corpus_chrf(hypothesis, references, kind);
  const char* name = kind == ChrfKind::chrf ? "chrF2" : "chrF2++";
  return {fmt::format("{} = {:.2f} ({})\n", name, chrf.score, chrf.signature),
          {{"score", chrf.score}, {"signature", chrf.signature}},
          {{name, chrf.score}}};
}

Result accuracy_result(const Lines& hypothesis, const std::vector<Lines>& references) {
  const Accuracy result = accuracy(hypothesis, references);
  return {fmt::format("accuracy = {:.2f} ({} of {} lines)\n", result.score, result.correct, result.lines),
          {{"score", result.score}, {"correct", result.correct}, {"lines", result.lines}},
          {{"accuracy", result.score}}};
}

Result rouge_result(const Lines& hypothesis, const std::vector<Lines>& references) {
  const Rouge result = rouge(hypothesis, references);
  const std::string signature =
      fmt::format("f1|nrefs:{}|stem:no|version:{}", references.size(), kMetricsVersion);
  return {
      fmt::format("ROUGE-1 = {:.2f}, ROUGE-2 = {:.2f}, ROUGE-L = {:.2f} ({})\n", 100 * result.rouge1,
                  100 * result.rouge2, 100 * result.rougeL, signature),
      {{"rouge1", 100 * result.rouge1},
       {"rouge2", 100 * result.rouge2},
       {"rougeL", 100 * result.rougeL},
       {"signature", signature}},
      {{"ROUGE-1", 100 * result.rouge1}, {"ROUGE-2", 100 * result.rouge2}, {"ROUGE-L", 100 * result.rougeL}}};
}

Result repetition_result(const Lines& hypothesis) {
  const RepeatedTrigrams result = repeated_trigrams(hypothesis);
  return {fmt::format("repeated trigrams = {:.2f} % ({} of {})\n", 100 * result.share(), result.repeated,
                      result.total),
          {{"score", 100 * result.share()}, {"repeated", result.repeated}, {"total", result.total}},
          {{"repeated %", 100 * result.share()}}};
}

constexpr std::array kMetrics = {"bleu", "chrf", "chrf++", "rouge", "accuracy", "repetition"};

Result score(const std::string& metric, const Lines& hypothesis, const std::vector<Lines>& references,
             Tokenization tokenization) {
  if (metric == "bleu") return bleu_result(hypothesis, references, tokenization);
  if (metric == "chrf") return chrf_result(hypothesis, references, ChrfKind::chrf);
  if (metric == "chrf++") return chrf_result(hypothesis, references, ChrfKind::chrf_plus_plus);
  if (metric == "rouge") return rouge_result(hypothesis, references);
  if (metric == "repetition") return repetition_result(hypothesis);
  return accuracy_result(hypothesis, references);
}

void check(const EvaluateOptions& options, const std::vector<std::filesystem::path>& references) {
  if (references.empty()) throw UsageError("no reference; give a file with --reference");
  const std::string known = fmt::format("there are {}", fmt::join(kMetrics, ", "));
  if (options.metrics.empty()) throw UsageError("no metric; " + known);
  for (const std::string& metric : options.metrics)
    if (std::find(kMetrics.begin(), kMetrics.end(), metric) == kMetrics.end())
      throw UsageError("no metric '" + metric + "'; " + known);
  const auto& ends = options.band_ends;
  if (ends.empty() || ends.front() < 0 ||
      std::adjacent_find(ends.begin(), ends.end(), std::greater_equal<>()) != ends.end())
    throw UsageError("the last lengths of bands must ascend, for example 10,20,30");
}

// Every metric once, in the order asked for.
std::vector<std::pair<std::string, Result>> scores(const EvaluateOptions& options, const Lines& hypothesis,
                                                   const std::vector<Lines>& references) {
  std::vector<std::pair<std::string, Result>> results;
  for (const std::string& metric : options.metrics) {
    const bool is_known =
        std::any_of(results.begin(), results.end(), [&](const auto& known) { return known.first == metric; });
    if (!is_known) results.emplace_back(metric, score(metric, hypothesis, references, options.tokenization));
  }
  return results;
}

// The lines whose source has first to last words.
struct Band {
  int64_t first;
  std::optional<int64_t> last;  // none: and longer
  std::vector<size_t> lines;
};

std::vector<Band> bands_of(const Lines& source, const std::vector<int64_t>& ends) {
  std::vector<Band> bands;
  int64_t first = 0;
  for (const int64_t end : ends) {
    bands.push_back({first, end, {}});
    first = end + 1;
  }
  bands.push_back({first, std::nullopt, {}});
  for (size_t i = 0; i < source.size(); ++i) {
    const auto band = std::lower_bound(ends.begin(), ends.end(), text::word_count(source[i])) - ends.begin();
    bands[static_cast<size_t>(band)].lines.push_back(i);
  }
  std::erase_if(bands, [](const Band& band) { return band.lines.empty(); });
  return bands;
}

Lines chosen(const Lines& all, const std::vector<size_t>& which) {
  Lines some;
  some.reserve(which.size());
  for (const size_t i : which) some.push_back(all[i]);
  return some;
}

// The scores of every band: a table, and the list for JSON.
std::pair<std::string, boost::json::array> scores_by_length(const EvaluateOptions& options,
                                                            const Lines& source, const Lines& hypothesis,
                                                            const std::vector<Lines>& references) {
  std::string table;
  boost::json::array list;
  for (const Band& band : bands_of(source, options.band_ends)) {
    std::vector<Lines> band_references;
    for (const Lines& reference : references) band_references.push_back(chosen(reference, band.lines));
    const auto results = scores(options, chosen(hypothesis, band.lines), band_references);
    if (table.empty()) {
      table = fmt::format("{:>12} {:>8}", "words", "lines");
      for (const auto& [metric, result] : results)
        for (const auto& column : result.columns) table += fmt::format(" {:>10}", column.name);
      table += "\n";
    }
    table += fmt::format(
        "{:>12} {:>8}",
        band.last ? fmt::format("{} to {}", band.first, *band.last) : fmt::format("{} or more", band.first),
        band.lines.size());
    boost::json::object json{{"from", band.first}, {"lines", band.lines.size()}};
    if (band.last) json["to"] = *band.last;
    for (const auto& [metric, result] : results) {
      for (const auto& column : result.columns) table += fmt::format(" {:>10.2f}", column.score);
      json[metric] = result.json;
    }
    table += "\n";
    list.push_back(std::move(json));
  }
  return {table, list};
}

std::vector<Links> read_links(const std::filesystem::path& path) {
  std::vector<Links> result;
  for (const std::string& line : read_lines(path)) {
    result.push_back(parse_links(line, path.string(), static_cast<int64_t>(result.size()) + 1));
  }
  return result;
}

}  // namespace

std::string evaluate_files(const std::filesystem::path& hypothesis,
                           const std::vector<std::filesystem::path>& references,
                           const EvaluateOptions& options) {
  check(options, references);
  const Lines hypothesis_lines = read_lines(hypothesis);
  std::vector<Lines> reference_lines;
  for (const auto& reference : references) {
    reference_lines.push_back(read_lines(reference));
    check_equal_lines(hypothesis, hypothesis_lines.size(), reference, reference_lines.back().size());
  }

  std::string text;
  boost::json::object json;
  for (auto& [metric, result] : scores(options, hypothesis_lines, reference_lines)) {
    text += result.text;
    json[metric] = std::move(result.json);
  }
  if (!options.lengths.empty()) {
    const Lines source = read_lines(options.lengths);
    check_equal_lines(hypothesis, hypothesis_lines.size(), options.lengths, source.size());
    auto [table, list] = scores_by_length(options, source, hypothesis_lines, reference_lines);
    text += table;
    json["by_length"] = std::move(list);
  }
  return options.json ? boost::json::serialize(json) + "\n" : text;
}

std::string evaluate_alignment_files(const std::filesystem::path& alignment,
                                     const std::filesystem::path& gold, bool json) {
  const std::vector<Links> links = read_links(alignment);
  const std::vector<Links> gold_links = read_links(gold);
  check_equal_lines(alignment, links.size(), gold, gold_links.size());
  const AlignmentError error = alignment_error(links, gold_links);
  if (!json) {
    return fmt::format("AER = {:.2f} (precision {:.2f}, recall {:.2f}, {} links, {} sure)\n",
                       100 * error.rate, 100 * error.precision, 100 * error.recall, error.links, error.sure);
  }
  const boost::json::object values{{"score", 100 * error.rate},
                                   {"precision", 100 * error.precision},
                                   {"recall", 100 * error.recall},
                                   {"links", error.links},
                                   {"sure", error.sure}};
  return boost::json::serialize(boost::json::object{{"aer", values}}) + "\n";
}

}  // namespace regard::evaluation
