// Firmware of a one-axis paddle (Hapkit and its kin) for Arduino boards; docs/how_to/hapkit.md tells how to load it.
//
// What it says and when it lets go is in hapkit_protocol.h, which is tested without a board. Here is only what hangs on
// the pins: the sensor, the motor, the clock, and the line.

#include "hapkit_protocol.h"
#include "hapkit_sensor.h"

#if defined(__AVR__)
#include <avr/eeprom.h>
#include <avr/wdt.h>
#endif

// ---- what to measure on your own paddle; lengths in metres ----------------------------------------------------------

#define RADIUS 0.0657         // from the paddle's axle to the handle
#define SECTOR 0.0732         // radius of the sector that the cable runs on
#define PULLEY 0.0042         // radius of the motor's pulley
#define WAY_PER_COUNT 12.3e-6 // of the handle: move it along a ruler and divide by the counts
#define FULL_TORQUE 0.03      // N m of the motor at full duty; duty goes with the root of the torque
#define MOST_FORCE 5.0        // N at the handle; never more, whatever the host asks for
#define WATCHDOG 20000UL      // us without a force, after which it lets go

#define BAUD 1000000UL        // exact on a 16 MHz board; boards that are USB all the way do not mind
#define PERIOD 1000UL         // us between samples; 500 where the processor is faster than an ATmega328
#define SOON 60UL             // us before a sample during which nothing else is begun, so that it is on time
#define SMOOTHING 200.0       // Hz, of the velocity

#define SENSOR_PIN A2         // magnetoresistive sensor; comment out for an encoder
#define ENCODER_A 2           // encoder, where there is one: pins with interrupts
#define ENCODER_B 3
#define MOTOR_PWM 5
#define MOTOR_DIRECTION 8

// ---- position -------------------------------------------------------------------------------------------------------

#if defined(SENSOR_PIN)

static hapkit_sensor sensor;

static int16_t reading_now()
{
  int16_t counts[4];
  for (uint8_t i = 0; i < 4; i++)
    counts[i] = analogRead(SENSOR_PIN);
  return hapkit_middle(counts);
}

#if defined(__AVR__)

// The span that was measured outlives the board's power: three bytes and their CRC, written a byte a turn, as a write takes
// 3 ms during which nothing waits.
#define STORED 5
static uint8_t stored[STORED], storing = STORED;

static int32_t stored_span()
{
  eeprom_read_block(stored, 0, STORED);
  return hapkit_crc16(stored, 3) == hapkit_get16(stored + 3) ? (int32_t)(hapkit_get32(stored) & 0xFFFFFF) : 0;
}

static void keep_span()
{
  int32_t off = sensor.span - (int32_t)(hapkit_get32(stored) & 0xFFFFFF);
  if (storing < STORED) {
    if (eeprom_is_ready()) {
      eeprom_update_byte((uint8_t *)(uintptr_t)storing, stored[storing]);
      storing++;
    }
  } else if (sensor.measured >= HAPKIT_KEPT_OF && (off > 256 || off < -256)) {
    uint8_t found[4];
    hapkit_put32(found, (uint32_t)sensor.span);
    memcpy(stored, found, 3);
    hapkit_put16(stored + 3, hapkit_crc16(stored, 3));
    storing = 0;
  }
}

#else

static int32_t stored_span() { return 0; }
static void keep_span() {}

#endif

static void start_sensor()
{
  int16_t reading;
#if defined(__AVR__)
  ADCSRA = (ADCSRA & ~0x07) | 0x04;  // a conversion takes 13 us instead of 104
#endif
  analogRead(SENSOR_PIN);
  do
    reading = reading_now();
  while (reading < 0);  // a flip lasts less than a sample
  hapkit_sensor_begin(&sensor, reading, stored_span());
}

// The position in quarters of a count.
static int32_t quarters_now()
{
  keep_span();
  return hapkit_sensor_take(&sensor, reading_now());
}

#else

static volatile int32_t encoder = 0;

static void on_edge()
{
  encoder += digitalRead(ENCODER_A) == digitalRead(ENCODER_B) ? 1 : -1;
}

static void start_sensor()
{
  pinMode(ENCODER_A, INPUT_PULLUP);
  pinMode(ENCODER_B, INPUT_PULLUP);
  attachInterrupt(digitalPinToInterrupt(ENCODER_A), on_edge, CHANGE);
}

static int32_t quarters_now()
{
  noInterrupts();
  int32_t found = encoder;
  interrupts();
  return HAPKIT_QUARTERS(found);
}

#endif

// ---- clock -----------------------------------------------------------------------------------------------------------

#if defined(__AVR_ATmega328P__)

// The motor's pin hangs on timer 0, which the core takes its clock from: at 976 Hz its pulses beat with the loop and can be
// heard. So that it can run at 62.5 kHz, time comes from timer 1, whose 16 bits last 32 ms: longer than a turn ever takes.
static void start_clock()
{
  TIMSK0 &= ~_BV(TOIE0);                // the core's clock, 64 times too fast from now on, stands still
  TCCR0B = (TCCR0B & ~0x07) | _BV(CS00);
  TCCR1A = 0;
  TCCR1B = _BV(CS11);                   // half a microsecond
  TCNT1 = 0;
}

static uint32_t clock_now()
{
  static uint32_t reached = 0;
  static uint16_t last = 0;
  uint16_t passed = (uint16_t)(TCNT1 - last) & ~1;  // whole microseconds; the half that is left comes with the next
  last += passed;
  reached += passed / 2;
  return reached;
}

#else

static void start_clock() {}
static uint32_t clock_now() { return micros(); }

#endif

// ---- force ----------------------------------------------------------------------------------------------------------

static void show(int32_t micronewtons)
{
  float torque = 1e-6 * micronewtons * RADIUS * PULLEY / SECTOR;
  float duty = sqrt(fabs(torque) / FULL_TORQUE);
  digitalWrite(MOTOR_DIRECTION, torque < 0 ? HIGH : LOW);
  analogWrite(MOTOR_PWM, (int)(255.0 * (duty < 1.0 ? duty : 1.0)));
}

// ---- everything -----------------------------------------------------------------------------------------------------

static hapkit_board board;
static hapkit_reader reader;
static uint8_t frame[HAPKIT_LONGEST + 6];
static int32_t zero = 0, before = 0, shown = 0;  // places in quarters of a count; force in uN
static uint32_t sampled = 0;
static float velocity = 0.0;  // um/s

static void send(size_t length)
{
  if ((size_t)Serial.availableForWrite() >= length)  // a host that does not read must not hold up the loop
    Serial.write(frame, length);
}

static void sample()
{
  const float share = 6.2832e-6 * SMOOTHING * PERIOD, um = 1e6 * WAY_PER_COUNT / HAPKIT_QUARTERS(1);
  int32_t place = quarters_now();
  if (board.wants_zero) {
    board.wants_zero = 0;
    zero = place;
  }
  velocity += (share < 1.0 ? share : 1.0) * (1e6 / PERIOD * um * (place - before) - velocity);
  before = place;
  if (board.talks)
    send(hapkit_sample(&board, frame, sampled, (place - zero + 2) >> 2, (int32_t)velocity, reader.dropped));
}

void setup()
{
  pinMode(MOTOR_PWM, OUTPUT);
  pinMode(MOTOR_DIRECTION, OUTPUT);
  show(0);
  start_sensor();
  board.radius = (uint32_t)(1e6 * RADIUS);
  board.resolution = (uint32_t)(1e9 * WAY_PER_COUNT);
  board.most = (int32_t)(1e6 * MOST_FORCE);
  board.watchdog = WATCHDOG;
  hapkit_begin(&board);
  Serial.begin(BAUD);
  before = quarters_now();
  start_clock();
#if defined(__AVR__)
  wdt_enable(WDTO_30MS);  // behind the watchdog: should this loop itself hang, the board begins anew, its pins low
#endif
}

void loop()
{
  while (Serial.available() > 0 && clock_now() - sampled < PERIOD - SOON) {
    uint8_t kind = hapkit_read(&reader, (uint8_t)Serial.read());
    if (kind != 0 && hapkit_obey(&board, kind, reader.piece + 1, clock_now()))
      send(hapkit_identity(&board, frame));
  }
  hapkit_watch(&board, clock_now());
  if (board.force != shown) {
    shown = board.force;
    show(shown);
  }
  if (clock_now() - sampled >= PERIOD - SOON) {
    while (clock_now() - sampled < PERIOD)
      ;
    sampled += PERIOD;  // not the time it is: samples do not drift
    if (clock_now() - sampled >= PERIOD)
      sampled = clock_now();  // one was missed
    sample();
  }
#if defined(__AVR__)
  wdt_reset();
#endif
}
