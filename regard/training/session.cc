#include "regard/training/session.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "regard/base/file.h"
#include "regard/decoding/classify.h"
#include "regard/decoding/search.h"
#include "regard/evaluation/bleu.h"
#include "regard/storage/checksum.h"
#include "regard/storage/json.h"
#include "regard/storage/safetensors.h"

namespace regard::training {
namespace {

const char* const kState = "state/state.safetensors";

std::string fingerprint(const Lines& lines) {
  std::string all;
  const auto add = [&](const std::vector<std::string>& side) {
    for (const auto& line : side) all += line + '\n';
    all += '\f';
  };
  for (const auto* side : {&lines.source, &lines.target, &lines.dev_source, &lines.dev_target}) add(*side);
  if (!lines.labels.empty()) {
    add(lines.labels);
    add(lines.dev_labels);
  }
  for (const auto& pair : lines.links) {
    for (const auto& [s, t] : pair) all += fmt::format("{}-{} ", s, t);
    all += '\n';
  }
  return checksum_text(checksum(all));
}

bool is_language_model(const SessionOptions& options) {
  return models::model_kind(options.model).task == models::Task::language;
}

/// What a trajectory depends on: written into config.json, compared on resuming.
boost::json::object training_json(const TrainingOptions& t) {
  boost::json::object json{{"seed", t.seed},
                           {"batch_tokens", t.batch_tokens},
                           {"learning_rate", t.learning_rate},
                           {"warm_up", t.warm_up},
                           {"label_smoothing", t.label_smoothing},
                           {"clip", t.adam.clip},
                           {"decay", t.adam.decay},
                           {"shards", t.shards},
                           {"evaluate_every", t.evaluate_every},
                           {"patience", t.patience}};
  if (t.accumulate > 1) json["accumulate"] = t.accumulate;
  if (t.average > 1) json["average"] = t.average;
  return json;
}

boost::json::object whole_config(const SessionOptions& options, const models::ModelConfig& sizes,
                                 const std::vector<std::string>& labels, bool guided) {
  boost::json::object config{{"model", options.model}};
  for (const auto& member : models::config_json(sizes, models::model_kind(options.model).options))
    config.insert(member);
  config["vocabulary"] = models::vocabulary_name(options.vocabulary.kind);
  config["vocabulary_size"] = options.vocabulary.size;  // asked for; the text may have fewer pieces
  config["longest"] = options.longest;
  if (is_language_model(options)) config["text_lines"] = options.text_lines;
  config["training"] = training_json(options.training);
  if (!labels.empty()) config["labels"] = boost::json::value_from(labels);
  if (guided) config["training"].as_object()["guided_weight"] = options.training.guided_weight;
  return config;
}

/// Of the c-th weights to be averaged, in the state.
std::string checkpoint_name(size_t c, const std::string& parameter) {
  return fmt::format("mean.{}.{}", c, parameter);
}

/// Throws UsageError at the first member that differs.
void require_same(const boost::json::object& before, const boost::json::object& now,
                  const std::string& prefix = "") {
  const auto text = [](const boost::json::value* v) {
    std::string s = v ? pretty(*v) : "the default";
    while (!s.empty() && s.back() == '\n') s.pop_back();
    return s;
  };
  const auto compare = [&](const std::string& key) {
    const auto *old = before.if_contains(key), *wanted = now.if_contains(key);
    if (old && wanted && old->is_object() && wanted->is_object())
      require_same(old->as_object(), wanted->as_object(), key + ".");
    else if (text(old) != text(wanted))
      throw UsageError("cannot resume: " + prefix + key + " was " + text(old) + " and is now " +
                       text(wanted) + "; give the earlier value or train into a new directory");
  };
  for (const auto& member : now) compare(member.key());
  for (const auto& member : before) compare(member.key());
}

/// A number that was written with all its digits, infinity included.
double exact_number(const std::string& text, const std::string& file) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') throw DataError(file, 0, "\"" + text + "\" is no number");
  return number;
}

class Session {
 public:
  Session(const SessionOptions& options, const Lines& lines, const SessionHooks& hooks, ThreadPool& pool)
      : options_(options), lines_(lines), hooks_(hooks), pool_(pool), directory_(prepare()) {}

  Ending run() {
    Data data = encode();
    const auto made = models::make_model(models::model_kind(options_.model), config_, options_.training.seed);
    models::Model& model = *made;
    Trainer trainer(model, data, options_.training, pool_);
    if (options_.resume)
      restore(model, trainer);
    else
      begin(model, trainer);
    Hooks hooks;
    hooks.report = [&](const Report& report) { write_report(report); };
    hooks.interrupted = hooks_.interrupted;
    hooks.improved = [&] { keep_best(model); };
    hooks.save = [&](const Progress& progress) { save(model, trainer, progress); };
    hooks.dev_quality = [&](Report& report) { measure(model, data, report); };
    const Ending ending = trainer.run(hooks);
    const auto& failure = state_failure_ ? state_failure_ : weights_failure_;
    if (failure)
      throw SystemError(*failure +
                        "; the last good checkpoint is kept: make room, then go on with the same command and "
                        "--resume");
    return ending;
  }

 private:
  ModelDirectory prepare() {
    check_options(options_, !lines_.links.empty());
    const std::string print = fingerprint(lines_);
    labels_ = lines_.labels;
    std::sort(labels_.begin(), labels_.end());
    labels_.erase(std::unique(labels_.begin(), labels_.end()), labels_.end());
    if (labels_.size() == 1)
      throw DataError("all pairs have the label \"" + labels_[0] + "\"; a classifier needs two at least");
    if (!options_.resume) {
      auto directory = ModelDirectory::create_aside(options_.output, print);
      source_ = target_ = text::train_vocabulary(vocabulary_text(), options_.vocabulary);
      config_ = options_.config;
      set_sizes();
      directory.write("config.json", pretty(whole_config(options_, config_, labels_, !lines_.links.empty())));
      models::write_vocabularies(directory, *source_, *target_);
      return directory;
    }
    if (!std::filesystem::exists(options_.output))
      throw UsageError("there is nothing to resume in " + options_.output.string() +
                       "; leave out --resume to begin");
    auto directory = ModelDirectory::open(options_.output);
    const auto vocabularies = models::load_vocabularies(directory);
    source_ = vocabularies.source;
    target_ = vocabularies.target;
    config_ = options_.config;
    set_sizes();
    const std::string name = directory.path("config.json").string();
    require_same(parse_json_object(directory.read("config.json"), name),
                 whole_config(options_, config_, labels_, !lines_.links.empty()));
    if (directory.data_fingerprint() != print)
      throw UsageError("cannot resume: the training or development data differ (fingerprint was " +
                       directory.data_fingerprint() + " and is now " + print +
                       "); give the files of the first run");
    return directory;
  }

  /// What the vocabulary, one for both sides, is made of.
  std::vector<std::string> vocabulary_text() const {
    std::vector<std::string> all = lines_.source;
    all.insert(all.end(), lines_.target.begin(), lines_.target.end());
    if (is_stream())
      for (std::string& line : all) line = text::closed_line(line);
    return all;
  }

  bool is_stream() const { return is_language_model(options_) && !options_.text_lines; }

  /// A language model's text, of which it has no source.
  void encode_text(const std::vector<std::string>& lines, text::Sentences& source,
                   text::Sentences& target) const {
    target = is_stream() ? text::encode_stream(*target_, lines, options_.longest)
                         : text::encode_lines(*target_, lines, options_.longest);
    source = text::empty_sentences(target.size());
  }

  Data encode() const {
    Data data;
    if (is_language_model(options_)) {
      encode_text(lines_.target, data.source, data.target);
      encode_text(lines_.dev_target, data.dev_source, data.dev_target);
      if (!is_stream()) note_cuts(data);
      return data;
    }
    data.source = text::encode_lines(*source_, lines_.source, options_.longest);
    data.target = text::encode_lines(*target_, lines_.target, options_.longest);
    data.guidance = guided_links(lines_.links, {*source_, lines_.source, data.source},
                                 {*target_, lines_.target, data.target});
    data.dev_source = text::encode_lines(*source_, lines_.dev_source, options_.longest);
    data.dev_target = text::encode_lines(*target_, lines_.dev_target, options_.longest);
    data.labels = numbers_of(lines_.labels);
    data.dev_labels = numbers_of(lines_.dev_labels);
    note_cuts(data);
    return data;
  }

  void set_sizes() {
    config_.source_vocabulary = source_->size();
    config_.target_vocabulary = labels_.empty() ? target_->size() : static_cast<int64_t>(labels_.size());
  }

  std::vector<int32_t> numbers_of(const std::vector<std::string>& labels) const {
    std::vector<int32_t> numbers;
    for (const std::string& label : labels) {
      const auto found = std::lower_bound(labels_.begin(), labels_.end(), label);
      if (found == labels_.end() || *found != label)
        throw DataError("the development data have the label \"" + label + "\", the training data do not");
      numbers.push_back(static_cast<int32_t>(found - labels_.begin()));
    }
    return numbers;
  }

  void note_cuts(const Data& data) const {
    int64_t cut = 0, first = 0;
    for (int64_t i = 0; i < data.source.size(); ++i) {
      const auto ended = [](std::span<const int32_t> ids) {
        return ids.empty() || ids.back() == text::Vocabulary::kEnd;
      };
      const bool whole = ended(data.source[i]) && ended(data.target[i]);
      if (!whole && cut++ == 0) first = i + 1;
    }
    if (cut > 0 && hooks_.note)
      hooks_.note(fmt::format("{} of {} {} are longer than {} pieces and were cut (the first is number {})",
                              cut, data.source.size(), is_language_model(options_) ? "lines" : "pairs",
                              options_.longest, first));
  }

  /// Weights and a state of step 0; only then does the directory stand in its place.
  void begin(const models::Model& model, Trainer& trainer) {
    models::write_weights(directory_, model.parameters());
    write_state(model, trainer, trainer.progress());
    directory_.move_into_place();
  }

  void restore(models::Model& model, Trainer& trainer) {
    const auto path = directory_.path(kState);
    if (!std::filesystem::exists(path))
      throw DataError(path.string(), 0,
                      "missing; the model can translate, but to go on training restore the file from a copy "
                      "or train again");
    const SafeTensors state = parse_safetensors(read_checked(path), path.string());
    std::vector<nn::Parameter> last, moments;
    for (const auto& tensor : state.tensors) {
      if (tensor.name.starts_with("last.")) last.push_back({tensor.name.substr(5), tensor.tensor});
      if (tensor.name.starts_with("best.")) best_.push_back({tensor.name.substr(5), tensor.tensor});
      if (tensor.name.starts_with("first.") || tensor.name.starts_with("second."))
        moments.push_back({tensor.name, tensor.tensor});
    }
    // The trainer's optimiser holds the model's own tensors: copy into them.
    const auto loaded = models::model_kind(options_.model).make(config_);
    try {
      loaded->load(last);
      trainer.optimiser().load_moments(moments);
    } catch (const DataError& error) {
      throw DataError(path.string(), 0, error.what());
    }
    const auto to = model.parameters(), from = loaded->parameters();
    for (size_t i = 0; i < to.size(); ++i)
      std::copy_n(from[i].value.data<float>(), to[i].value.size(), to[i].value.data<float>());
    restore_checkpoints(state, trainer, path.string());
    const auto found = state.metadata.find("progress");
    if (found == state.metadata.end()) throw DataError(path.string(), 0, "no progress in the training state");
    const auto json = parse_json_object(found->second, path.string());
    Progress& p = trainer.progress();
    p.step = json_integer(json, "step", path.string(), 0);
    p.epoch = json_integer(json, "epoch", path.string(), 0);
    p.batch = json_integer(json, "batch", path.string(), 0);
    p.seconds = json_number(json, "seconds", path.string());
    p.best_dev_loss = exact_number(json_string(json, "best_dev_loss", path.string()), path.string());
    p.best_step = json_integer(json, "best_step", path.string(), 0);
    p.evaluations_without_improvement =
        json_integer(json, "evaluations_without_improvement", path.string(), 0);
    p.has_best = json_boolean(json, "has_best", path.string());
    if (!best_.empty()) models::write_weights(directory_, best_);
    cut_log(p.step);
  }

  void restore_checkpoints(const SafeTensors& state, Trainer& trainer, const std::string& file) const {
    for (size_t c = 0;; ++c) {
      std::vector<nn::Parameter> weights;
      const std::string prefix = checkpoint_name(c, "");
      for (const auto& tensor : state.tensors)
        if (tensor.name.starts_with(prefix))
          weights.push_back({tensor.name.substr(prefix.size()), tensor.tensor});
      if (weights.empty()) return;
      const auto loaded = models::model_kind(options_.model).make(config_);
      try {
        loaded->load(weights);
      } catch (const DataError& error) {
        throw DataError(file, 0, error.what());
      }
      trainer.checkpoints().push_back(models::tensors_of(*loaded));
    }
  }

  void cut_log(int64_t step) const {
    const auto path = directory_.path("train.jsonl");
    if (!std::filesystem::exists(path)) return;
    const std::string all = read_file(path);
    std::string kept;
    for (size_t begin = 0; begin < all.size();) {
      const size_t end = std::min(all.find('\n', begin), all.size());
      const std::string line = all.substr(begin, end - begin);
      begin = end + 1;
      boost::json::error_code error;
      const auto value = boost::json::parse(line, error);
      if (error || !value.is_object()) {
        if (begin < all.size() && hooks_.warn)  // a kill may have cut the last line, but no other
          hooks_.warn(path.string() + " is damaged; its lines from there on are dropped");
        break;
      }
      const auto* at = value.as_object().if_contains("step");
      if (!at || !at->is_int64() || at->as_int64() > step) break;
      kept += line + '\n';
    }
    write_file_atomically(path, kept);
  }

  void write_report(const Report& report) const {
    boost::json::object json{{"step", report.step}, {"epoch", report.epoch}};
    const auto put = [&](const char* key, const std::optional<double>& value) {
      if (value && std::isfinite(*value)) json[key] = *value;  // JSON has no others
    };
    put("loss", report.loss);
    put("dev_loss", report.dev_loss);
    put("dev_bleu", report.dev_bleu);
    put("dev_accuracy", report.dev_accuracy);
    json["learning_rate"] = report.learning_rate;
    put("target_tokens_per_s", report.target_tokens_per_s);
    json["seconds"] = report.seconds;
    append(boost::json::serialize(json) + "\n");
    if (hooks_.report) hooks_.report(report);
  }

  void append(const std::string& line) const {
    const auto path = directory_.path("train.jsonl");
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    struct stat before {};
    bool written = descriptor >= 0 && ::fstat(descriptor, &before) == 0;
    if (written) {
      written = ::write(descriptor, line.data(), line.size()) == static_cast<ssize_t>(line.size());
      // Half a line would spoil the next one.
      if (!written) [[maybe_unused]]
        const int undone = ::ftruncate(descriptor, before.st_size);
    }
    if (!written && hooks_.warn) hooks_.warn("cannot write " + path.string() + "; training goes on");
    if (descriptor >= 0) ::close(descriptor);
  }

  void keep_best(const models::Model& model) {
    best_.clear();
    for (const auto& p : model.parameters()) best_.push_back({p.name, p.value.copy()});
    write_best();
  }

  void write_best() {
    guarded(weights_failure_, [&] { models::write_weights(directory_, best_); });
  }

  void save(const models::Model& model, Trainer& trainer, const Progress& progress) {
    if (best_.empty())  // until the first evaluation the last weights are the ones to have
      guarded(weights_failure_, [&] { models::write_weights(directory_, model.parameters()); });
    else if (weights_failure_)
      write_best();
    guarded(state_failure_, [&] { write_state(model, trainer, progress); });
  }

  void write_state(const models::Model& model, Trainer& trainer, const Progress& p) {
    std::vector<NamedTensor> tensors;
    for (const auto& w : model.parameters()) tensors.push_back({"last." + w.name, w.value});
    for (const auto& w : best_) tensors.push_back({"best." + w.name, w.value});
    for (size_t c = 0; c < trainer.checkpoints().size(); ++c)
      for (size_t w = 0; w < model.parameters().size(); ++w)
        tensors.push_back({checkpoint_name(c, model.parameters()[w].name), trainer.checkpoints()[c][w]});
    for (const auto& m : trainer.optimiser().moments()) tensors.push_back({m.name, m.value});
    const boost::json::object json{{"step", p.step},
                                   {"epoch", p.epoch},
                                   {"batch", p.batch},
                                   {"seconds", p.seconds},
                                   {"best_step", p.best_step},
                                   {"best_dev_loss", fmt::format("{:.17g}", p.best_dev_loss)},
                                   {"evaluations_without_improvement", p.evaluations_without_improvement},
                                   {"has_best", p.has_best}};
    write_checked(directory_.path(kState),
                  safetensors_content(tensors, {{"progress", boost::json::serialize(json)}}));
  }

  /// A full disk must not end training: it warns, and the next save tries again.
  template <class Write>
  void guarded(std::optional<std::string>& failure, Write write) {
    try {
      write();
      failure.reset();
    } catch (const SystemError& error) {
      failure = error.what();
      if (hooks_.warn)
        hooks_.warn(std::string(error.what()) +
                    "; the earlier checkpoint is kept, the next save tries again");
    }
  }

  /// BLEU of the first development lines, or a classifier's accuracy.
  void measure(const models::Model& model, const Data& data, Report& report) const {
    if (const auto* classifier = dynamic_cast<const models::Classifier*>(&model))
      report.dev_accuracy =
          decoding::accuracy(*classifier, data.dev_source, data.dev_target, data.dev_labels, pool_);
    else if (options_.bleu_lines > 0 && !is_language_model(options_))
      report.dev_bleu = dev_bleu(dynamic_cast<const models::EncoderDecoder&>(model), data);
  }

  double dev_bleu(const models::EncoderDecoder& model, const Data& data) const {
    std::vector<std::span<const int32_t>> sources;
    std::vector<std::string> references, hypotheses;
    int64_t longest_source = 0, longest_target = 0;
    for (int64_t i = 0; i < std::min(options_.bleu_lines, data.dev_source.size()); ++i) {
      sources.push_back(data.dev_source[i]);
      references.push_back(lines_.dev_target[static_cast<size_t>(i)]);
      longest_source = std::max(longest_source, data.dev_source.length(i));
      longest_target = std::max(longest_target, data.dev_target.length(i));
    }
    decoding::SearchOptions search{.beam = 1};
    // Summaries: a model that does not know yet when to end would go on for twice the text's length.
    if (2 * longest_target < longest_source) search.max_length = 2 * longest_target + 10;
    for (const auto& found : decoding::search(model, sources, search, pool_))
      hypotheses.push_back(found.empty() ? "" : target_->decode(found[0].ids));
    return evaluation::corpus_bleu(hypotheses, references).score;
  }

  const SessionOptions& options_;
  const Lines& lines_;
  const SessionHooks& hooks_;
  ThreadPool& pool_;
  std::shared_ptr<const text::Vocabulary> source_, target_;
  models::ModelConfig config_;
  std::vector<std::string> labels_;  // in order
  ModelDirectory directory_;
  std::vector<nn::Parameter> best_;
  std::optional<std::string> state_failure_, weights_failure_;  // of the last try
};

}  // namespace

void check_options(const SessionOptions& options, bool guided) {
  const models::ModelKind& kind = models::model_kind(options.model);
  models::check_config(kind, options.config);
  if (!guided) return;
  const auto model = kind.make(options.config);
  const auto* writes = dynamic_cast<const models::EncoderDecoder*>(model.get());
  if (!writes || !writes->attends())
    throw UsageError("--guided-alignment teaches attention, and --model " + options.model + " has none");
}

Ending run_session(const SessionOptions& options, const Lines& lines, const SessionHooks& hooks,
                   ThreadPool& pool) {
  const bool language = is_language_model(options);
  if (lines.target.empty())
    throw DataError(language ? "there is nothing to train on: no text"
                             : "there is nothing to train on: no sentence pairs");
  if (language && !(lines.source.empty() && lines.dev_source.empty()))
    throw DataError("--model " + options.model + " is a language model and reads no source");
  if (!language &&
      (lines.source.size() != lines.target.size() || lines.dev_source.size() != lines.dev_target.size()))
    throw DataError(fmt::format(
        "source and target have different numbers of lines: {} and {} (development: {} and {})",
        lines.source.size(), lines.target.size(), lines.dev_source.size(), lines.dev_target.size()));
  if (!lines.links.empty() && lines.links.size() != lines.source.size())
    throw DataError(
        fmt::format("there are links of {} pairs for {} pairs", lines.links.size(), lines.source.size()));
  const bool classifies = models::model_kind(options.model).task == models::Task::classification;
  if (lines.labels.size() != (classifies ? lines.source.size() : 0) ||
      lines.dev_labels.size() != (classifies ? lines.dev_source.size() : 0))
    throw DataError(fmt::format("there are {} labels for {} pairs (development: {} for {}) and --model {}",
                                lines.labels.size(), lines.source.size(), lines.dev_labels.size(),
                                lines.dev_source.size(), options.model));
  return Session(options, lines, hooks, pool).run();
}

}  // namespace regard::training
