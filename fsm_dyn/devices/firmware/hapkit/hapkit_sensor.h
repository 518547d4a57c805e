/* Position of a magnetoresistive sensor whose output rises over half a turn of its magnet and then begins anew (a flip).
 *
 * Plain C99 (and C++, for Arduino); lengths in quarters of a count of the converter.  How many counts lie between two flips
 * depends on magnet, sensor and supply: it is measured at every flip, as the jump less what the handle moved meanwhile, and
 * averaged.  A reading taken while the output falls from one end to the other lies anywhere between: readings that differ
 * too much within a sample, or do not follow from those before, are passed over once.  The position is flips x span +
 * reading, so that no error adds up however many flips there are (2000 one way at most).  Samples are equally far apart.
 */
#ifndef HAPKIT_SENSOR_H
#define HAPKIT_SENSOR_H

#include <stdint.h>

#define HAPKIT_QUARTERS(counts) (4 * (counts))
#define HAPKIT_LEAST_SPAN HAPKIT_QUARTERS(600) /* a smaller jump is none of the sensor's */
#define HAPKIT_MOST_SPAN HAPKIT_QUARTERS(1100)
#define HAPKIT_SPREAD 12  /* counts between readings within a sample; more is a flip between them */
#define HAPKIT_SETTLED 4  /* counts between the two readings after it; more is the end of the flip */
#define HAPKIT_CHANGE HAPKIT_QUARTERS(12) /* by which steps of successive samples differ at most: 150 m/s^2 */
#define HAPKIT_STEADY HAPKIT_QUARTERS(4) /* flips at which the step changes by more do not count towards the mean span */
#define HAPKIT_MEAN_OF 255 /* flips */
#define HAPKIT_KEPT_OF 64  /* flips after which a span is worth keeping, and counts as measured so often when it is read */
#define HAPKIT_OTHER HAPKIT_QUARTERS(8) /* two flips in a row so far from the mean are of another sensor: it begins anew */

typedef struct {
  int32_t span;      /* between two flips, in 256ths; 0: not known yet */
  int16_t reading;   /* taken last */
  int16_t step;      /* moved in the sample that led to it */
  int16_t flips;     /* passed upwards less passed downwards */
  uint8_t measured;  /* flips that the span is the mean of */
  uint8_t others;    /* flips in a row that were far from the mean */
  uint8_t passed_over; /* whether the reading before was */
  /* the flip just passed, to be measured when the step after it is known */
  int8_t flip;       /* 1 upwards, -1 downwards, 0 none */
  uint8_t samples;   /* that it took: 2 where a reading was passed over */
  int16_t jump;      /* of the reading */
  int16_t step_before;
} hapkit_sensor;

/* Whether two readings of a sample differ by so many counts at most. */
static inline uint8_t hapkit_agree(int16_t one, int16_t other, int16_t counts)
{
  return one - other <= counts && other - one <= counts;
}

/* One reading, in quarters of a count, of four in a row, in counts: the mean of the two in the middle, which leaves out one
 * that is taken as a flip begins; where there is a flip between them, of the last two; -1 where it has not ended before these. */
static inline int16_t hapkit_middle(const int16_t *counts)
{
  int16_t least = counts[0], most = counts[0], sum = counts[0];
  uint8_t i;
  for (i = 1; i < 4; i++) {
    least = counts[i] < least ? counts[i] : least;
    most = counts[i] > most ? counts[i] : most;
    sum = (int16_t)(sum + counts[i]);
  }
  if (hapkit_agree(least, most, HAPKIT_SPREAD))
    return (int16_t)(2 * (sum - least - most));
  return (int16_t)(hapkit_agree(counts[2], counts[3], HAPKIT_SETTLED) ? 2 * (counts[2] + counts[3]) : -1);
}

/* Begin at a reading, which is the position, with a span found before (in 256ths; 0: none). */
static inline void hapkit_sensor_begin(hapkit_sensor *sensor, int16_t reading, int32_t span)
{
  uint8_t known = span >= 256 * (int32_t)HAPKIT_LEAST_SPAN && span <= 256 * (int32_t)HAPKIT_MOST_SPAN;
  sensor->span = known ? span : 0;
  sensor->measured = known ? HAPKIT_KEPT_OF : 0;
  sensor->reading = reading;
  sensor->step = sensor->flips = sensor->jump = sensor->step_before = 0;
  sensor->others = sensor->passed_over = sensor->samples = 0;
  sensor->flip = 0;
}

/* The position. */
static inline int32_t hapkit_sensor_position(const hapkit_sensor *sensor)
{
  return ((sensor->flips * sensor->span + 128) >> 8) + sensor->reading;
}

/* The span that a flip shows, where the handle moved by twice_step / 2 a sample; 0: none. */
static inline int32_t hapkit_sensor_measured(const hapkit_sensor *sensor, int16_t twice_step)
{
  int32_t span = sensor->flip * (128 * (int32_t)sensor->samples * twice_step - 256 * (int32_t)sensor->jump);
  return span < 256 * (int32_t)HAPKIT_LEAST_SPAN || span > 256 * (int32_t)HAPKIT_MOST_SPAN ? 0 : span;
}

/* Measure the flip before the step just made; the mean of the steps before and after it is what it moved itself. */
static inline void hapkit_sensor_measure(hapkit_sensor *sensor)
{
  int16_t change = (int16_t)(sensor->step - sensor->step_before);
  int32_t span = hapkit_sensor_measured(sensor, (int16_t)(sensor->step + sensor->step_before));
  int32_t off = span - sensor->span;
  sensor->flip = 0;
  if (span == 0 || (sensor->measured != 0 && (change > HAPKIT_STEADY || change < -HAPKIT_STEADY)))
    return;
  if (sensor->measured != 0 && (off > 256 * (int32_t)HAPKIT_OTHER || off < -256 * (int32_t)HAPKIT_OTHER)) {
    if (++sensor->others < 2)
      return;
    sensor->measured = 0;
  }
  sensor->others = 0;
  if (sensor->measured < HAPKIT_MEAN_OF)
    sensor->measured++;
  sensor->span += off / sensor->measured;
}

/* Count a flip of a jump over so many samples, to be measured at the next step. */
static inline void hapkit_sensor_flip(hapkit_sensor *sensor, int8_t flip, int16_t jump, uint8_t samples)
{
  sensor->flip = flip;
  sensor->samples = samples;
  sensor->jump = jump;
  sensor->step_before = sensor->step;
  if (sensor->span == 0)
    sensor->span = hapkit_sensor_measured(sensor, (int16_t)(2 * sensor->step));
  if (sensor->span != 0)
    sensor->flips = (int16_t)(sensor->flips + flip);
  else
    sensor->flip = 0;
}

/* Take the reading of a sample, in quarters of a count (-1: there is none); return the position. */
static inline int32_t hapkit_sensor_take(hapkit_sensor *sensor, int16_t reading)
{
  int16_t jump = (int16_t)(reading - sensor->reading), span = (int16_t)(sensor->span >> 8);
  int16_t edge = (int16_t)((span != 0 ? span : HAPKIT_LEAST_SPAN) / 2);
  uint8_t samples = (uint8_t)(1 + sensor->passed_over);
  int16_t expected = (int16_t)(samples * sensor->step), moved = jump, off;
  int8_t flip = (int8_t)(jump < -edge ? 1 : jump > edge ? -1 : 0);
  if (flip != 0)
    moved = span != 0 ? (int16_t)(jump + flip * span) : expected;
  off = (int16_t)(moved - expected);
  if (!sensor->passed_over &&
      (reading < 0 || off > HAPKIT_CHANGE || off < -HAPKIT_CHANGE || (flip != 0 && span == 0))) {
    sensor->passed_over = 1;
    sensor->flip = 0;
    return hapkit_sensor_position(sensor) + sensor->step;
  }
  sensor->passed_over = 0;
  if (reading < 0)
    return hapkit_sensor_position(sensor) + 2 * sensor->step;
  if (flip != 0) {
    hapkit_sensor_flip(sensor, flip, jump, samples);
  } else {
    sensor->step = (int16_t)(moved / samples);
    if (sensor->flip != 0)
      hapkit_sensor_measure(sensor);
  }
  sensor->reading = reading;
  return hapkit_sensor_position(sensor);
}

#endif
