/* The firmware's header as a library, for the test that holds it against its twin in Python. */
#include "hapkit_protocol.h"

size_t frame(uint8_t *out, uint8_t kind, const uint8_t *body, size_t length)
{
  return hapkit_frame(out, kind, body, length);
}

/* Take bytes; write kind and body of every frame in them, one after the other, and return how many there are. */
int read_all(hapkit_reader *reader, const uint8_t *data, size_t length, uint8_t *out)
{
  int found = 0, i;
  size_t k;
  for (k = 0; k < length; k++) {
    uint8_t kind = hapkit_read(reader, data[k]);
    if (kind == 0)
      continue;
    found++;
    for (i = 0; i <= hapkit_body_length(kind); i++)
      *out++ = reader->piece[i];
  }
  return found;
}

size_t reader_size(void) { return sizeof(hapkit_reader); }
size_t board_size(void) { return sizeof(hapkit_board); }
int dropped(const hapkit_reader *reader) { return reader->dropped; }

void begin(hapkit_board *board, uint32_t radius, uint32_t resolution, int32_t most, uint32_t watchdog)
{
  board->radius = radius;
  board->resolution = resolution;
  board->most = most;
  board->watchdog = watchdog;
  hapkit_begin(board);
}

/* Take bytes as the sketch does; return how many bytes of identities are in out. */
size_t take(hapkit_board *board, hapkit_reader *reader, const uint8_t *data, size_t length, uint32_t now, uint8_t *out)
{
  size_t k, sent = 0;
  for (k = 0; k < length; k++) {
    uint8_t kind = hapkit_read(reader, data[k]);
    if (kind != 0 && hapkit_obey(board, kind, reader->piece + 1, now))
      sent += hapkit_identity(board, out + sent);
  }
  return sent;
}

void watch(hapkit_board *board, uint32_t now) { hapkit_watch(board, now); }

size_t sample(hapkit_board *board, uint8_t *out, uint32_t now, int32_t counts, int32_t velocity, uint8_t lost)
{
  return hapkit_sample(board, out, now, counts, velocity, lost);
}
