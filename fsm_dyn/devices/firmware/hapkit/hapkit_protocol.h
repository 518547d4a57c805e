/* What a one-axis paddle says and does, without a word about its hardware.
 *
 * Plain C99 (and C++, for Arduino): frames, their CRC, and the small machine that decides which force is shown.
 * fsm_dyn/devices/hapkit.py and fsm_dyn/devices/emulators/hapkit.py are the same in Python.
 *
 * A frame is 00 COBS(kind, body, crc) 00; numbers are little-endian; the CRC is CRC-16/CCITT-FALSE of kind and body.
 */
#ifndef HAPKIT_PROTOCOL_H
#define HAPKIT_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

#define HAPKIT_VERSION 1
#define HAPKIT_LONGEST 32 /* bytes between two zeros; more is no frame */

#define HAPKIT_HELLO 0x01
#define HAPKIT_FORCE 0x02
#define HAPKIT_ZERO 0x03
#define HAPKIT_IDENTITY 0x81
#define HAPKIT_SAMPLE 0x82

#define HAPKIT_LET_GO 1  /* no force until one of zero has come */
#define HAPKIT_LIMITED 2 /* the force last asked for was more than can be shown */

/* ---- numbers ---- */

static inline uint8_t *hapkit_put16(uint8_t *at, uint16_t value)
{
  at[0] = (uint8_t)value;
  at[1] = (uint8_t)(value >> 8);
  return at + 2;
}

static inline uint8_t *hapkit_put32(uint8_t *at, uint32_t value)
{
  return hapkit_put16(hapkit_put16(at, (uint16_t)value), (uint16_t)(value >> 16));
}

static inline uint16_t hapkit_get16(const uint8_t *at)
{
  return (uint16_t)(at[0] | (uint16_t)((uint16_t)at[1] << 8));
}

static inline uint32_t hapkit_get32(const uint8_t *at)
{
  return (uint32_t)hapkit_get16(at) | ((uint32_t)hapkit_get16(at + 2) << 16);
}

static inline uint16_t hapkit_crc16(const uint8_t *data, size_t length)
{
  uint16_t crc = 0xFFFF;
  size_t i;
  for (i = 0; i < length; i++) { /* a byte at once, without a table */
    uint8_t x = (uint8_t)((crc >> 8) ^ data[i]);
    x = (uint8_t)(x ^ (x >> 4));
    crc = (uint16_t)((uint16_t)(crc << 8) ^ (uint16_t)((uint16_t)x << 12) ^ (uint16_t)((uint16_t)x << 5) ^ x);
  }
  return crc;
}

/* ---- frames ---- */

/* Write kind and body as a frame, of at most length + 6 bytes; return how many. */
static inline size_t hapkit_frame(uint8_t *out, uint8_t kind, const uint8_t *body, size_t length)
{
  uint8_t plain[HAPKIT_LONGEST];
  size_t i, at = 1, code, total = length + 3;
  plain[0] = kind;
  for (i = 0; i < length; i++)
    plain[i + 1] = body[i];
  hapkit_put16(plain + 1 + length, hapkit_crc16(plain, length + 1));
  out[0] = 0;
  code = at++;
  for (i = 0; i < total; i++) {
    if (plain[i] != 0) {
      out[at++] = plain[i];
    } else {
      out[code] = (uint8_t)(at - code);
      code = at++;
    }
  }
  out[code] = (uint8_t)(at - code);
  out[at++] = 0;
  return at;
}

typedef struct {
  uint8_t piece[HAPKIT_LONGEST]; /* since the last zero */
  uint8_t length;
  uint8_t too_long;
  uint8_t dropped; /* pieces that were no frames; begins anew after 255 */
} hapkit_reader;

/* Undo the stuffing of a piece in its place; return the length, or -1 where that cannot be. */
static inline int hapkit_unstuff(uint8_t *piece, uint8_t length)
{
  uint8_t from = 0, to = 0, i;
  while (from < length) {
    uint8_t run = piece[from];
    if (run > length - from)
      return -1;
    for (i = 1; i < run; i++)
      piece[to++] = piece[from + i];
    from = (uint8_t)(from + run);
    if (from < length)
      piece[to++] = 0;
  }
  return to;
}

static inline int hapkit_body_length(uint8_t kind)
{
  switch (kind) {
  case HAPKIT_HELLO: return 1;
  case HAPKIT_FORCE: return 6;
  case HAPKIT_ZERO: return 0;
  case HAPKIT_IDENTITY: return 17;
  case HAPKIT_SAMPLE: return 22;
  default: return -1;
  }
}

/* Take a byte; where it ends a frame return its kind, the body in reader->piece + 1; else 0. */
static inline uint8_t hapkit_read(hapkit_reader *reader, uint8_t byte)
{
  int length;
  uint8_t given = reader->length;
  if (byte != 0) {
    if (reader->length < HAPKIT_LONGEST)
      reader->piece[reader->length++] = byte;
    else
      reader->too_long = 1;
    return 0;
  }
  reader->length = 0;
  if (given == 0)
    return 0;
  length = reader->too_long ? -1 : hapkit_unstuff(reader->piece, given);
  reader->too_long = 0;
  if (length >= 3 && hapkit_body_length(reader->piece[0]) == length - 3 &&
      hapkit_get16(reader->piece + length - 2) == hapkit_crc16(reader->piece, (size_t)length - 2))
    return reader->piece[0];
  reader->dropped++;
  return 0;
}

/* ---- the board ---- */

typedef struct {
  /* what it is; set once */
  uint32_t radius;     /* of the handle, um */
  uint32_t resolution; /* way per count at the handle, nm */
  int32_t most;        /* force it can show, uN */
  uint32_t watchdog;   /* after how long without a force it lets go, us; 0: never */
  /* how it is; zeroed at the beginning, but for let_go = 1 */
  int32_t force;       /* to be shown, uN at the handle */
  uint8_t let_go;
  uint8_t limited;
  uint8_t talks;       /* a host has said hello: samples are sent */
  uint8_t wants_zero;  /* the host asked for the zero to be here */
  uint16_t echo;
  uint16_t sequence;
  uint32_t last;       /* when a force came last, us */
} hapkit_board;

static inline void hapkit_begin(hapkit_board *board)
{
  board->force = 0;
  board->let_go = 1; /* whatever ran before: first a force of zero */
  board->limited = board->talks = board->wants_zero = 0;
  board->echo = board->sequence = 0;
  board->last = 0;
}

static inline void hapkit_let_go(hapkit_board *board)
{
  board->force = 0;
  board->let_go = 1;
}

/* Carry out a frame that came at a time (us); return 1 where the host waits for an identity. */
static inline int hapkit_obey(hapkit_board *board, uint8_t kind, const uint8_t *body, uint32_t now)
{
  int32_t force;
  switch (kind) {
  case HAPKIT_HELLO:
    board->talks = 1;
    return 1;
  case HAPKIT_ZERO:
    board->wants_zero = 1;
    return 0;
  case HAPKIT_FORCE:
    board->echo = hapkit_get16(body);
    force = (int32_t)hapkit_get32(body + 2);
    board->last = now;
    board->limited = (uint8_t)(force > board->most || force < -board->most);
    if (board->limited)
      force = force > 0 ? board->most : -board->most;
    if (force == 0)
      board->let_go = 0;
    board->force = board->let_go ? 0 : force;
    return 0;
  default:
    return 0;
  }
}

/* To be called at every turn, after the frames that have come: let go when none has for too long. */
static inline void hapkit_watch(hapkit_board *board, uint32_t now)
{
  if (board->watchdog != 0 && !board->let_go && (uint32_t)(now - board->last) > board->watchdog)
    hapkit_let_go(board);
}

/* Write the identity as a frame; return its length. */
static inline size_t hapkit_identity(const hapkit_board *board, uint8_t *out)
{
  uint8_t body[17], *at = body;
  *at++ = HAPKIT_VERSION;
  at = hapkit_put32(at, board->radius);
  at = hapkit_put32(at, board->resolution);
  at = hapkit_put32(at, (uint32_t)board->most);
  hapkit_put32(at, board->watchdog);
  return hapkit_frame(out, HAPKIT_IDENTITY, body, sizeof body);
}

/* Write a sample as a frame; return its length. */
static inline size_t hapkit_sample(hapkit_board *board, uint8_t *out, uint32_t now, int32_t counts, int32_t velocity,
                                   uint8_t dropped)
{
  uint8_t body[22], *at = body;
  board->sequence++;
  at = hapkit_put16(at, board->sequence);
  at = hapkit_put32(at, now);
  at = hapkit_put32(at, (uint32_t)counts);
  at = hapkit_put32(at, (uint32_t)velocity);
  at = hapkit_put16(at, board->echo);
  at = hapkit_put32(at, (uint32_t)board->force);
  *at++ = (uint8_t)((board->let_go ? HAPKIT_LET_GO : 0) | (board->limited ? HAPKIT_LIMITED : 0));
  *at = dropped;
  return hapkit_frame(out, HAPKIT_SAMPLE, body, sizeof body);
}

#endif
