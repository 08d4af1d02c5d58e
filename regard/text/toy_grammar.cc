#include "regard/text/toy_grammar.h"

#include <array>
#include <string>
#include <unordered_set>

#include "regard/base/error.h"
#include "regard/base/random.h"

namespace regard::text {
namespace {

struct Noun {
  const char *english, *english_plural, *french, *french_plural;
  bool feminine;
  bool vowel;  // le and la become l'
};

struct Adjective {
  const char* english;
  // masculine, masculine before a vowel, feminine, masculine plural, feminine plural
  std::array<const char*, 5> french;
};

struct Verb {
  const char *english, *english_plural, *french, *french_plural;
};

constexpr std::array<Noun, 10> kBeings = {{
    {"cat", "cats", "chat", "chats", false, false},
    {"dog", "dogs", "chien", "chiens", false, false},
    {"woman", "women", "femme", "femmes", true, false},
    {"man", "men", "homme", "hommes", false, true},
    {"girl", "girls", "fille", "filles", true, false},
    {"child", "children", "enfant", "enfants", false, true},
    {"teacher", "teachers", "professeur", "professeurs", false, false},
    {"bird", "birds", "oiseau", "oiseaux", false, true},
    {"mouse", "mice", "souris", "souris", true, false},
    {"horse", "horses", "cheval", "chevaux", false, false},
}};

constexpr std::array<Noun, 12> kThings = {{
    {"house", "houses", "maison", "maisons", true, false},
    {"book", "books", "livre", "livres", false, false},
    {"car", "cars", "voiture", "voitures", true, false},
    {"tree", "trees", "arbre", "arbres", false, true},
    {"apple", "apples", "pomme", "pommes", true, false},
    {"picture", "pictures", "image", "images", true, true},
    {"boat", "boats", "bateau", "bateaux", false, false},
    {"key", "keys", "clé", "clés", true, false},
    {"hat", "hats", "chapeau", "chapeaux", false, false},
    {"flower", "flowers", "fleur", "fleurs", true, false},
    {"island", "islands", "île", "îles", true, true},
    {"coat", "coats", "manteau", "manteaux", false, false},
}};

constexpr std::array<Adjective, 5> kSizes = {{
    {"small", {"petit", "petit", "petite", "petits", "petites"}},
    {"big", {"grand", "grand", "grande", "grands", "grandes"}},
    {"old", {"vieux", "vieil", "vieille", "vieux", "vieilles"}},
    {"new", {"nouveau", "nouvel", "nouvelle", "nouveaux", "nouvelles"}},
    {"beautiful", {"beau", "bel", "belle", "beaux", "belles"}},
}};

constexpr std::array<Adjective, 6> kColours = {{
    {"red", {"rouge", "rouge", "rouge", "rouges", "rouges"}},
    {"black", {"noir", "noir", "noire", "noirs", "noires"}},
    {"blue", {"bleu", "bleu", "bleue", "bleus", "bleues"}},
    {"green", {"vert", "vert", "verte", "verts", "vertes"}},
    {"white", {"blanc", "blanc", "blanche", "blancs", "blanches"}},
    {"yellow", {"jaune", "jaune", "jaune", "jaunes", "jaunes"}},
}};

constexpr std::array<Verb, 8> kVerbs = {{
    {"sees", "see", "voit", "voient"},
    {"wants", "want", "veut", "veulent"},
    {"takes", "take", "prend", "prennent"},
    {"finds", "find", "trouve", "trouvent"},
    {"loses", "lose", "perd", "perdent"},
    {"watches", "watch", "regarde", "regardent"},
    {"buys", "buy", "achète", "achètent"},
    {"draws", "draw", "dessine", "dessinent"},
}};

constexpr std::array<std::array<const char*, 2>, 8> kPlaces = {{
    {"in the garden", "dans le jardin"},
    {"in the street", "dans la rue"},
    {"behind the church", "derrière l'église"},
    {"behind the wall", "derrière le mur"},
    {"on the table", "sur la table"},
    {"on the bridge", "sur le pont"},
    {"under the tree", "sous l'arbre"},
    {"in front of the school", "devant l'école"},
}};

enum class Determiner { the, a, this_, my, count };

struct Phrase {
  std::string english, french;
  bool plural;
};

bool starts_with_vowel(const std::string& english) {
  return std::string("aeiou").find(english[0]) != std::string::npos;
}

/// The determiner with the space after it, if it has one. `vowel` is about the word that follows.
std::string french_determiner(Determiner determiner, bool feminine, bool plural, bool vowel) {
  switch (determiner) {
    case Determiner::the:
      return plural ? "les " : vowel ? "l'" : feminine ? "la " : "le ";
    case Determiner::a:
      return plural ? "deux " : feminine ? "une " : "un ";
    case Determiner::this_:
      return plural ? "ces " : feminine ? "cette " : vowel ? "cet " : "ce ";
    default:
      return plural ? "mes " : feminine && !vowel ? "ma " : "mon ";
  }
}

/// For a plural, "a" is "two".
std::string english_determiner(Determiner determiner, bool plural, const std::string& next) {
  switch (determiner) {
    case Determiner::the:
      return "the ";
    case Determiner::a:
      return plural ? "two " : starts_with_vowel(next) ? "an " : "a ";
    case Determiner::this_:
      return plural ? "these " : "this ";
    default:
      return "my ";
  }
}

class Writer {
 public:
  explicit Writer(uint64_t seed) : random_(seed, 0x746f79) {}

  Pair sentence() {
    const Phrase subject = phrase(pick(kBeings));
    const Verb& verb = pick(kVerbs);
    const Phrase object = random_.below(3) == 0 ? phrase(pick(kBeings)) : phrase(pick(kThings));
    Pair pair;
    pair.source =
        subject.english + " " + (subject.plural ? verb.english_plural : verb.english) + " " + object.english;
    pair.target =
        subject.french + " " + (subject.plural ? verb.french_plural : verb.french) + " " + object.french;
    if (random_.below(3) == 0) {
      const auto& place = pick(kPlaces);
      pair.source += std::string(" ") + place[0];
      pair.target += std::string(" ") + place[1];
    }
    return pair;
  }

 private:
  template <class Table>
  const typename Table::value_type& pick(const Table& table) {
    return table[random_.below(table.size())];
  }

  Phrase phrase(const Noun& noun) {
    const bool plural = random_.below(3) == 0;
    const auto determiner = static_cast<Determiner>(random_.below(static_cast<uint64_t>(Determiner::count)));
    const Adjective* size = random_.below(2) == 0 ? &pick(kSizes) : nullptr;
    const Adjective* colour = random_.below(2) == 0 ? &pick(kColours) : nullptr;

    std::string english = plural ? noun.english_plural : noun.english;
    if (colour) english = std::string(colour->english) + " " + english;
    if (size) english = std::string(size->english) + " " + english;

    std::string french = plural ? noun.french_plural : noun.french;
    const size_t form = plural ? (noun.feminine ? 4 : 3) : noun.feminine ? 2 : 0;
    if (size) french = std::string(size->french[form == 0 && noun.vowel ? 1 : form]) + " " + french;
    if (colour) french += std::string(" ") + colour->french[form];

    const bool vowel = noun.vowel && !size;
    return {english_determiner(determiner, plural, english) + english,
            french_determiner(determiner, noun.feminine, plural, vowel) + french, plural};
  }

  RandomStream random_;
};

}  // namespace

std::vector<Pair> toy_pairs(int64_t count, uint64_t seed) {
  if (count < 0 || count > 1'000'000) throw UsageError("the toy grammar gives 0 to 1000000 pairs");
  std::vector<Pair> pairs;
  std::unordered_set<std::string> seen;
  Writer writer(seed);
  while (static_cast<int64_t>(pairs.size()) < count) {
    Pair pair = writer.sentence();
    if (!seen.insert(pair.source).second) continue;
    pair.line = static_cast<int64_t>(pairs.size()) + 1;
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

}  // namespace regard::text
