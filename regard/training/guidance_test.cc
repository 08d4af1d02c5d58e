#include "regard/training/guidance.h"

#include <gtest/gtest.h>

#include "regard/base/file.h"
#include "regard/text/vocabulary.h"
#include "tests/support/temporary_folder.h"

namespace regard::training {
namespace {

const std::vector<std::string> kSource{"the red house", "yes", "a dog"},
    kTarget{"la maison rouge", "oui", "un chien"};

/// What reading `content` beside the lines above says; empty if nothing is wrong.
std::string complaint(const std::string& content) {
  const tests::TemporaryFolder folder;
  write_file_atomically(folder / "links", content);
  try {
    read_word_links(folder / "links", kSource, kTarget);
  } catch (const DataError& error) {
    const std::string what = error.what();
    return what.substr(what.find("links"));
  }
  return "";
}

TEST(WordLinks, TrailingBlanksAndEmptyLinesAreFine) {
  const tests::TemporaryFolder folder;
  write_file_atomically(folder / "links", "0-0 1-2 2?1 \n\n0-0\t1-1\n");
  EXPECT_EQ(read_word_links(folder / "links", kSource, kTarget),
            (WordLinks{{{0, 0}, {1, 2}, {2, 1}}, {}, {{0, 0}, {1, 1}}}));
}

TEST(WordLinks, WhatIsWrongIsNamedWithItsLine) {
  EXPECT_EQ(complaint("0-0\n0-0\n0-2\n").substr(0, 36), "links:3: link 0-2 of a pair of 2 sou");
  EXPECT_EQ(complaint("3-0\n\n\n").substr(0, 16), "links:1: link 3-");
  EXPECT_EQ(complaint("0-0\n-1-0\n\n").substr(0, 14), "links:2: '-1-0");
  EXPECT_EQ(complaint("0-0\n1\n\n").substr(0, 11), "links:2: '1");
  EXPECT_NE(complaint("0-0\n\n").find("2 lines of links for 3 pairs"), std::string::npos);
}

/// (target, source, share) of a pair, as text.
std::string text_of(const std::vector<models::GuidedLink>& links) {
  std::string text;
  for (const auto& link : links)
    text += std::to_string(link.target) + "<" + std::to_string(link.source) + ":" +
            std::to_string(link.share).substr(0, 4) + " ";
  return text;
}

TEST(GuidedLinks, APieceLooksAtAllPiecesOfItsWordsInEqualShares) {
  const std::vector<std::string> source{"a bc", "de f"}, target{"xy z", "x"};
  const auto vocabulary = text::train_vocabulary(std::vector<std::string>{"a bc de f xy z"},
                                                 {.kind = text::VocabularyKind::characters, .size = 100});
  const auto sources = text::encode_lines(*vocabulary, source, 100),
             targets = text::encode_lines(*vocabulary, target, 100);
  const auto links = guided_links({{{0, 1}, {1, 0}}, {{0, 0}, {1, 0}}}, {*vocabulary, source, sources},
                                  {*vocabulary, target, targets});
  // "a| bc" and "xy| z": a space belongs to the word behind it.
  EXPECT_EQ(text_of(links[0]), "0<1:0.33 0<2:0.33 0<3:0.33 1<1:0.33 1<2:0.33 1<3:0.33 2<0:1.00 3<0:1.00 ");
  EXPECT_EQ(text_of(links[1]), "0<0:0.25 0<1:0.25 0<2:0.25 0<3:0.25 ");
  // Cut after "a b": the link of what is left stays.
  const auto cut = text::encode_lines(*vocabulary, source, 3);
  EXPECT_EQ(text_of(guided_links({{{1, 0}}, {{1, 0}}}, {*vocabulary, source, cut},
                                 {*vocabulary, target, targets})[0]),
            "0<1:0.50 0<2:0.50 1<1:0.50 1<2:0.50 ");
}

}  // namespace
}  // namespace regard::training
