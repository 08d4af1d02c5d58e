#pragma once
// The makers behind train_vocabulary() and load_vocabulary(), one pair a kind.

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "regard/text/vocabulary.h"

namespace regard::text {

/// A newline inside a message, as line files write it.
inline constexpr std::string_view kNewline = "\\n";

std::shared_ptr<const Vocabulary> train_sentencepiece(std::span<const std::string> lines,
                                                      const VocabularyOptions& options);
std::shared_ptr<const Vocabulary> load_sentencepiece(std::string_view bytes, const std::string& name);

/// Words (cut at U+0020 only) or characters (code points), the most frequent first.
std::shared_ptr<const Vocabulary> train_list(std::span<const std::string> lines,
                                             const VocabularyOptions& options);
std::shared_ptr<const Vocabulary> load_list(VocabularyKind kind, std::string_view bytes,
                                            const std::string& name);

}  // namespace regard::text
