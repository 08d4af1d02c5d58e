#pragma once
// Inside text only: what PO and MO both read in a catalogue's header.

#include <cstdint>
#include <string_view>

namespace regard::text {

/// The number after "nplurals=" in a catalogue's header;
/// 0 if there is none, or none that makes sense (1 to 99).
int64_t plural_count(std::string_view header);

}  // namespace regard::text
