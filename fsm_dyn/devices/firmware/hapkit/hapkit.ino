// Firmware of a one-axis paddle (Hapkit and its kin) for Arduino boards; docs/how_to/hapkit.md tells how to load it.
//
// What it says and when it lets go is in hapkit_protocol.h, which is tested without a board. Here is only what hangs on
// the pins: the sensor, the motor, the clock, and the line.

#include "hapkit_protocol.h"

#if defined(__AVR__)
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
#define SAMPLES 1000UL        // a second; 2000 where the processor is faster than an ATmega328
#define SMOOTHING 200.0       // Hz, of the velocity

#define SENSOR_PIN A2         // magnetoresistive sensor; comment out for an encoder
#define ENCODER_A 2           // encoder, where there is one: pins with interrupts
#define ENCODER_B 3
#define MOTOR_PWM 5
#define MOTOR_DIRECTION 8

// ---- position -------------------------------------------------------------------------------------------------------

#if defined(SENSOR_PIN)

// The sensor's voltage begins anew twice in a turn of its magnet: a jump of more than half its span is that.
#define SPAN 980  // counts between two beginnings
static int32_t begun = 0;
static int16_t raw_before = 0;

static void start_sensor()
{
#if defined(__AVR__)
  ADCSRA = (ADCSRA & ~0x07) | 0x04;  // a conversion takes 13 us instead of 104
#endif
  raw_before = analogRead(SENSOR_PIN);
}

static int32_t counts_now()
{
  int16_t raw = analogRead(SENSOR_PIN);
  if (raw - raw_before > SPAN / 2) begun -= SPAN;
  if (raw_before - raw > SPAN / 2) begun += SPAN;
  raw_before = raw;
  return begun + raw;
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

static int32_t counts_now()
{
  noInterrupts();
  int32_t found = encoder;
  interrupts();
  return found;
}

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
static int32_t zero = 0, counted = 0, shown = 0;
static uint32_t sampled = 0;
static float velocity = 0.0;  // um/s

static void send(size_t length)
{
  if ((size_t)Serial.availableForWrite() >= length)  // a host that does not read must not hold up the loop
    Serial.write(frame, length);
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
  counted = counts_now();
#if defined(__AVR__)
  wdt_enable(WDTO_30MS);  // behind the watchdog: should this loop itself hang, the board begins anew, its pins low
#endif
}

void loop()
{
  while (Serial.available() > 0) {
    uint8_t kind = hapkit_read(&reader, (uint8_t)Serial.read());
    if (kind != 0 && hapkit_obey(&board, kind, reader.piece + 1, micros()))
      send(hapkit_identity(&board, frame));
  }
  hapkit_watch(&board, micros());
  if (board.force != shown) {
    shown = board.force;
    show(shown);
  }
  uint32_t now = micros();
  if (now - sampled >= 1000000UL / SAMPLES) {
    float step = 1e-6 * (now - sampled);
    sampled = now;
    int32_t counts = counts_now();
    if (board.wants_zero) {
      board.wants_zero = 0;
      zero = counts;
    }
    float rate = 1e6 * WAY_PER_COUNT * (counts - counted) / step;
    counted = counts;
    float share = 6.2832 * SMOOTHING * step;
    velocity += (share < 1.0 ? share : 1.0) * (rate - velocity);
    if (board.talks)
      send(hapkit_sample(&board, frame, now, counts - zero, (int32_t)velocity, reader.dropped));
  }
#if defined(__AVR__)
  wdt_reset();
#endif
}
