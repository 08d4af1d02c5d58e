#pragma once
// Which scores a tile of queries computes. Keys are visited in blocks at multiples of kKeyBlock, whatever the
// tile, so that a row's sums are cut at the same keys in every tile. Inside a block, segments leave out the
// vectors of queries that positions disallow: along the diagonal little more than the triangle is computed.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "regard/attention/problem.h"

namespace regard::attention {

constexpr int64_t kTile = 64;      ///< queries a tile, side by side in vectors
constexpr int64_t kKeyBlock = 96;  ///< keys a block; scores of a tile and a block take 24 KB

/// Keys [begin, end), for vectors [first, last) of the tile. `partial`: not all of these pairs are in the
/// band.
struct Segment {
  int64_t begin, end;
  int first, last;
  bool partial;
};

/// Positions [begin, end).
struct Range {
  int64_t begin = 0, end = 0;
  bool operator==(const Range&) const = default;
};

/// The segments of one block, in ascending order, never none. Not all vectors of the tile need occur.
struct KeyBlock {
  int64_t begin;  ///< a multiple of kKeyBlock
  const std::vector<Segment>& segments;

  int64_t first_key() const { return segments.front().begin; }
  int64_t end_key() const { return segments.back().end; }

  /// From the first to the last key of a vector; [0, 0) if it has none. Lists of blocks may leave out some
  /// between.
  Range keys_of(int vector) const {
    Range keys;
    for (const Segment& s : segments) {
      if (vector < s.first || vector >= s.last) continue;
      if (keys.end == 0) keys.begin = s.begin;
      keys.end = s.end;
    }
    return keys;
  }
  /// body(first vector, last vector, keys) for neighbours with the same keys: all vectors, except at an edge.
  template <class Body>
  void for_each_group(int vectors, const Body& body) const {
    for (int first = 0, last = 0; first < vectors; first = last) {
      const Range keys = keys_of(first);
      while (last < vectors && keys_of(last) == keys) ++last;
      body(first, last, keys);
    }
  }
};

/// Visits the blocks of the tile of queries [first, first + count), count > 0, held in vectors of `lanes`.
class KeyBlocks {
 public:
  template <class T>
  KeyBlocks(const Head<T>& head, int64_t first, int64_t count, int64_t lanes, std::vector<Segment>& segments)
      : band_(head.band),
        blocks_(head.blocks),
        first_(first),
        count_(count),
        lanes_(lanes),
        segments_(segments) {}

  /// Calls body(KeyBlock) for each block that holds an allowed key.
  template <class Body>
  void for_each(const Body& body) const {
    const int64_t begin = band_.begin(first_), end = band_.end(first_ + count_ - 1);
    segments_.clear();
    int64_t block = -1;
    for_each_run(begin, end, [&](int64_t a, int64_t b) {
      while (a < b) {
        if (a / kKeyBlock != block) {
          if (!segments_.empty()) body(KeyBlock{block * kKeyBlock, segments_});
          segments_.clear();
          block = a / kKeyBlock;
        }
        const int64_t stop = std::min(b, (block + 1) * kKeyBlock);
        add_segments(a, stop);
        a = stop;
      }
    });
    if (!segments_.empty()) body(KeyBlock{block * kKeyBlock, segments_});
  }

 private:
  /// The runs of keys in [begin, end) that the list of blocks allows. A tile lies in one block of queries.
  template <class Body>
  void for_each_run(int64_t begin, int64_t end, const Body& body) const {
    if (!blocks_) return body(begin, end);
    const auto row = static_cast<size_t>(first_ / blocks_->query_block);
    for (int64_t n = blocks_->row_starts[row]; n < blocks_->row_starts[row + 1]; ++n) {
      const int64_t at = blocks_->key_blocks[static_cast<size_t>(n)] * blocks_->key_block;
      body(std::max(begin, at), std::min(end, at + blocks_->key_block));
    }
  }

  /// Keys [a, b) of one block. Query n of the tile may attend to key j if low(j) <= n <= high(j).
  void add_segments(int64_t a, int64_t b) const {
    const int64_t position = first_ + band_.offset;
    for (int64_t j = a, next; j < b; j = next) {
      const int64_t low = j - band_.right - position, high = j + band_.left - position;
      next = std::min(b, low <= 0 ? j + 1 - low : j + lanes_ - low % lanes_);
      if (high < count_ - 1)
        next = std::min(next, std::min(j + lanes_ - high % lanes_, j + count_ - 1 - high));
      const int64_t from = std::max<int64_t>(0, low) / lanes_, to = std::min(count_ - 1, high) / lanes_ + 1;
      const bool partial = low + (next - 1 - j) > from * lanes_ || high < std::min(count_, to * lanes_) - 1;
      if (from < to) segments_.push_back({j, next, static_cast<int>(from), static_cast<int>(to), partial});
    }
  }

  Band band_;
  const BlockSparse* blocks_;
  int64_t first_, count_, lanes_;
  std::vector<Segment>& segments_;
};

/// How the queries of an item are cut into tiles: every tile lies in one block of queries of a block-sparse
/// mask.
class Tiles {
 public:
  Tiles(int64_t queries, const BlockSparse& blocks)
      : queries_(queries),
        block_(blocks.query_block > 0 ? blocks.query_block : std::max<int64_t>(queries, 1)),
        in_block_((block_ + kTile - 1) / kTile),
        count_((queries + block_ - 1) / block_ * in_block_) {}

  int64_t count() const { return count_; }
  /// Queries [begin, end) of a tile; none in the last ones of a block that the queries do not fill.
  Range queries(int64_t tile) const {
    const int64_t block = in_block_ == count_ ? 0 : tile / in_block_;
    const int64_t begin = block * block_ + (tile - block * in_block_) * kTile;
    return {std::min(queries_, begin), std::min({queries_, begin + kTile, (block + 1) * block_})};
  }

 private:
  int64_t queries_, block_, in_block_, count_;
};

}  // namespace regard::attention
