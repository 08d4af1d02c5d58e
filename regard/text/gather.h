#pragma once
// Pairs from whatever a user names: catalogues, TSV files, folders of them, line files in pairs.

#include <span>
#include <string>
#include <vector>

#include "regard/text/readers.h"

namespace regard::text {

/// All pairs of files and folders, in the order given (a folder: in the order of paths). Files whose name
/// tells no format are line files and come in pairs, source before target unless their endings say otherwise
/// (news.fr with to = "fr"). Throws UsageError, DataError and SystemError naming the file.
std::vector<Pair> gather_pairs(std::span<const std::string> names, const std::string& from,
                               const std::string& to);

}  // namespace regard::text
