// Padding: documents of any length are truncated or padded to the rows of a rectangle, with a mask.
#include <stdint.h>

// Writes rows[n][width] and mask[n][width] (1 for an id, 0 for padding) from ids and offsets[n + 1]. `pad_left`:
// padding comes first. A longer document loses ids behind its first `head`; if that is negative, those before its last
// `-head - 1`. One thread per element; a row has `blocks_per_row` blocks.
extern "C" __global__ void pad_rows(const int32_t* ids, const int64_t* offsets, int64_t width, int64_t blocks_per_row,
                                    int32_t pad_id, int32_t pad_left, int32_t head, int32_t* rows, int32_t* mask) {
  const int64_t row = blockIdx.x / blocks_per_row;
  const int64_t column = blockIdx.x % blocks_per_row * blockDim.x + threadIdx.x;
  if (column >= width) return;
  const int64_t length = offsets[row + 1] - offsets[row], kept = length < width ? length : width;
  const int64_t at = pad_left ? column - (width - kept) : column;
  const bool filled = at < 0 || at >= kept;
  const int64_t first_part = head < 0 ? kept + head + 1 : head;
  rows[row * width + column] = filled ? pad_id : ids[offsets[row] + at + (at < first_part ? 0 : length - kept)];
  mask[row * width + column] = !filled;
}
