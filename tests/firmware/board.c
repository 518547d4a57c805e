/* An ATmega328P that runs a sketch, a magnet before its sensor, and a host at its serial line, in simulated time.
 *
 * board ELF SECONDS LOW SPAN NOISE SLEW SEED EEPROM < host bytes > events
 *
 * The magnet moves as a hand would, within 7 spans; the sensor's reading rises from LOW over SPAN counts, takes SLEW
 * seconds to fall back, and is off by up to NOISE counts either way.  EEPROM is a file that holds the board's, if there is
 * one.  Standard input has lines "microseconds hex-bytes"; standard output has lines "letter microseconds value": "u" a
 * byte from the board, "x" the magnet's place in counts where a sample begins, "p" the duty of pin 5, "d" the level of pin
 * 8, "t" the prescaler bits of timer 0 at the end.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <simavr/avr_adc.h>
#include <simavr/avr_eeprom.h>
#include <simavr/avr_ioport.h>
#include <simavr/avr_timer.h>
#include <simavr/avr_uart.h>
#include <simavr/sim_avr.h>
#include <simavr/sim_elf.h>

#define MHZ 16
#define EEPROM_SIZE 1024
#define TCCR0B 0x45

static avr_t *board;
static avr_irq_t *sensor;
static double low, span, noise, slew;
static avr_cycle_count_t converted;

static double now_us(void) { return (double)board->cycle / MHZ; }

static double place(double t) /* counts */
{
  const double tau = 6.283185307179586;
  double grown = t < 0.05 ? 0.0 : t < 0.35 ? pow((t - 0.05) / 0.3, 2) : 1.0;
  return 300.3 + grown * span * (2.2 * sin(tau * 1.3 * t) + 1.05 * sin(tau * 3.1 * t + 1.0) + 0.17 * sin(tau * 7.7 * t));
}

static int reading(double t) /* counts */
{
  double x = place(t), earlier = place(t - slew), at = x - span * floor(x / span), off = noise * (2 * drand48() - 1);
  if (floor(x / span) != floor(earlier / span)) {
    double from = earlier - span * floor(earlier / span), edge = span * fmax(floor(x / span), floor(earlier / span));
    at = from + (at - from) * fabs(x - edge) / fmax(fabs(x - earlier), 1e-9);
  }
  return (int)fmin(1023, fmax(0, floor(low + at + off)));
}

static void on_conversion(avr_irq_t *irq, uint32_t value, void *param)
{
  (void)irq, (void)value, (void)param;
  avr_raise_irq(sensor, (uint32_t)ceil(reading(1e-6 * now_us()) * 5000.0 / 1023.0)); /* millivolts */
  if (board->cycle - converted > 300 * MHZ)
    printf("x %.2f %.4f\n", now_us(), place(1e-6 * now_us()));
  converted = board->cycle;
}

static void on_event(avr_irq_t *irq, uint32_t value, void *letter)
{
  (void)irq;
  printf("%s %.2f %u\n", (const char *)letter, now_us(), (unsigned)value);
}

static void listen(uint32_t group, int index, char *letter)
{
  avr_irq_register_notify(avr_io_getirq(board, group, index), on_event, letter);
}

static void keep(const char *path, int write)
{
  uint8_t bytes[EEPROM_SIZE];
  avr_eeprom_desc_t described = {.ee = bytes, .offset = 0, .size = EEPROM_SIZE};
  FILE *file = fopen(path, write ? "wb" : "rb");
  if (file == NULL)
    return;
  if (write) {
    avr_ioctl(board, AVR_IOCTL_EEPROM_GET, &described); /* returns -1 whatever it does */
    fwrite(bytes, 1, EEPROM_SIZE, file);
  } else if (fread(bytes, 1, EEPROM_SIZE, file) == EEPROM_SIZE) {
    avr_ioctl(board, AVR_IOCTL_EEPROM_SET, &described);
  }
  fclose(file);
}

int main(int argc, char **argv)
{
  elf_firmware_t firmware = {0};
  static char line[4096];
  double until, at = -1;
  char *hex = NULL;
  uint32_t flags = 0;
  int state;
  if (argc != 9 || elf_read_firmware(argv[1], &firmware) != 0)
    return 2;
  until = 1e6 * atof(argv[2]);
  low = atof(argv[3]), span = atof(argv[4]), noise = atof(argv[5]), slew = atof(argv[6]);
  srand48(atol(argv[7]));
  board = avr_make_mcu_by_name("atmega328p");
  avr_init(board);
  firmware.frequency = MHZ * 1000000;
  avr_load_firmware(board, &firmware);
  board->vcc = board->avcc = board->aref = 5000;
  board->log = LOG_ERROR;
  avr_ioctl(board, AVR_IOCTL_UART_GET_FLAGS('0'), &flags);
  flags &= ~(uint32_t)(AVR_UART_FLAG_STDIO | AVR_UART_FLAG_POLL_SLEEP);
  avr_ioctl(board, AVR_IOCTL_UART_SET_FLAGS('0'), &flags);
  keep(argv[8], 0);
  sensor = avr_io_getirq(board, AVR_IOCTL_ADC_GETIRQ, ADC_IRQ_ADC2);
  avr_irq_register_notify(avr_io_getirq(board, AVR_IOCTL_ADC_GETIRQ, ADC_IRQ_OUT_TRIGGER), on_conversion, NULL);
  listen(AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_OUTPUT, "u");
  listen(AVR_IOCTL_TIMER_GETIRQ('0'), TIMER_IRQ_OUT_PWM1, "p");
  listen(AVR_IOCTL_IOPORT_GETIRQ('B'), 0, "d");
  while (now_us() < until) {
    if (hex == NULL && fgets(line, sizeof line, stdin) != NULL) {
      char *end;
      at = strtod(line, &end);
      hex = end + 1;
    }
    if (hex != NULL && now_us() >= at) { /* a byte in 10 us: a megabaud */
      unsigned byte;
      if (sscanf(hex, "%2x", &byte) == 1) {
        avr_raise_irq(avr_io_getirq(board, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_INPUT), byte);
        hex += 2, at += 10;
      } else {
        hex = NULL;
      }
    }
    state = avr_run(board);
    if (state == cpu_Done || state == cpu_Crashed) {
      fprintf(stderr, "the board stopped at %.2f us\n", now_us());
      return 1;
    }
  }
  printf("t %.2f %u\n", now_us(), board->data[TCCR0B] & 7u);
  keep(argv[8], 1);
  return 0;
}
