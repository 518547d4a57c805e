/* Sequences of calls of a unit in any order, on two instances: each returns a status, and no memory but theirs is
   touched.  Compiled with the sources of the unit; -DVERSION=2 or 3; argument: how many sequences. */

#if VERSION == 3
#include "fsm_fmi3.c"
#define F(name) fmi3##name
typedef fmi3Status status;
#else
#include "fsm_fmi2.c"
#define F(name) fmi2##name
typedef fmi2Status status;
#endif

static uint64_t seed = 1;

static uint32_t draw(uint32_t n)
{
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return (uint32_t)((seed * 2685821657736338717u) >> 33) % n;
}

static double number(void)
{
    static const double values[] = {0.0, 1e-3, 0.05, 1.0, -1.0, 50.0, 1e-300, 1e300, INFINITY, -INFINITY, NAN};
    return values[draw(11)];
}

/* A small step or time most often, else something odd. */
static double moment(double at)
{
    return draw(4) > 0 ? at + 0.01 * draw(5) : number();
}

/* Room with bytes behind it that a sanitizer watches. */
static double *room(size_t n)
{
    double *values = malloc((n + 1) * sizeof *values);
    for (size_t i = 0; i < n; i++) {
        values[i] = draw(3) > 0 ? 0.01 * draw(100) : number();
    }
    return values;
}

static status logged(void *instance, uint32_t which)
{
    size_t n = draw(4);
    uint32_t references[4];
    struct fmu_places at = fmu_places();
    for (size_t i = 0; i < n; i++) {
        references[i] = draw(8) > 0 ? draw((uint32_t)at.end) : draw(UINT32_MAX);
    }
    double *values = room(n);
#if VERSION == 3
    int64_t whole[4];
    size_t said = draw(8) > 0 ? n : draw(4) % (n + 1);
    status s = which == 0   ? fmi3GetFloat64(instance, references, n, values, said)
               : which == 1 ? fmi3SetFloat64(instance, references, n, values, said)
                            : fmi3GetInt64(instance, references, n, whole, said);
#else
    int whole[4], order[4] = {1, 1, 1, (int)draw(3)};
    status s = which == 0   ? fmi2GetReal(instance, references, n, values)
               : which == 1 ? fmi2SetReal(instance, references, n, values)
               : draw(2)    ? fmi2GetInteger(instance, references, n, whole)
                            : fmi2SetRealInputDerivatives(instance, references, n, order, values);
#endif
    free(values);
    return s;
}

static status directional(void *instance)
{
    struct fmu_places at = fmu_places();
    size_t n = draw(4), m = draw(4);
    uint32_t unknowns[4], knowns[4];
    for (size_t i = 0; i < 4; i++) {
        unknowns[i] =
            (uint32_t)(draw(2) ? at.outputs + draw(2) : at.derivatives + draw((uint32_t)(at.end - at.derivatives)));
        knowns[i] = draw(9) ? (uint32_t)at.inputs + draw((uint32_t)(at.mode - at.inputs)) : draw(UINT32_MAX);
    }
    double *seed = room(m), *sensitivity = room(n);
#if VERSION == 3
    status s = fmi3GetDirectionalDerivative(instance, unknowns, n, knowns, m, seed, m, sensitivity, n);
#else
    status s = fmi2GetDirectionalDerivative(instance, unknowns, n, knowns, m, seed, sensitivity);
#endif
    free(seed);
    free(sensitivity);
    return s;
}

static status step(void *instance, double at)
{
#if VERSION == 3
    bool event, ends, early;
    double reached;
    return fmi3DoStep(instance, moment(at), 0.01 * draw(3) * draw(9), false, &event, &ends, &early,
                      draw(20) ? &reached : NULL);
#else
    return fmi2DoStep(instance, moment(at), 0.01 * draw(3) * draw(9), 0);
#endif
}

static status update_discrete(void *instance)
{
#if VERSION == 3
    bool flags[5];
    double next;
    return fmi3UpdateDiscreteStates(instance, flags, flags + 1, flags + 2, flags + 3, flags + 4,
                                    draw(20) ? &next : NULL);
#else
    fmi2EventInfo found;
    return fmi2NewDiscreteStates(instance, draw(20) ? &found : NULL);
#endif
}

static status begin(void *instance)
{
#if VERSION == 3
    return fmi3EnterInitializationMode(instance, false, 0.0, moment(0.0), false, 0.0);
#else
    status s = draw(2) ? fmi2SetupExperiment(instance, 0, 0.0, moment(0.0), 0, 0.0) : fmi2OK;
    return s == fmi2OK ? fmi2EnterInitializationMode(instance) : s;
#endif
}

static status arrays(void *instance, uint32_t which)
{
    size_t right = which == 3 ? (size_t)fsm_fmu_indicators : (size_t)fmu_state_count(), n = draw(8) ? right : draw(9);
    double *values = room(n);
    status s;
    switch (which) {
    case 0:
        s = F(SetContinuousStates)(instance, values, n);
        break;
    case 1:
        s = F(GetContinuousStates)(instance, values, n);
        s = s == 0 && draw(2) ? F(SetContinuousStates)(instance, values, n) : s;
        break;
    case 2:
#if VERSION == 3
        s = fmi3GetContinuousStateDerivatives(instance, values, n);
#else
        s = fmi2GetDerivatives(instance, values, n);
#endif
        break;
    case 3:
        s = F(GetEventIndicators)(instance, values, n);
        break;
    default:
        s = F(GetNominalsOfContinuousStates)(instance, values, n);
    }
    free(values);
    return s;
}

#if VERSION == 3
#define COPY(name) fmi3##name##FMUState
#define SIZE       fmi3SerializedFMUStateSize
#define TO_BYTES   fmi3SerializeFMUState
#define FROM_BYTES fmi3DeserializeFMUState
typedef uint8_t byte;
#else
#define COPY(name) fmi2##name##FMUstate
#define SIZE       fmi2SerializedFMUstateSize
#define TO_BYTES   fmi2SerializeFMUstate
#define FROM_BYTES fmi2DeSerializeFMUstate
typedef fmi2Byte byte;
#endif

/* Copy an instance to another one, through bytes or not, some of them damaged. */
static status copies(void *from, void *to)
{
    void *copy = NULL, *again = NULL;
    size_t size = 0;
    status s = COPY(Get)(from, &copy);
    if (s == 0 && SIZE(from, copy, &size) == 0 && draw(2)) {
        byte *bytes = malloc(size);
        s = TO_BYTES(from, copy, bytes, draw(8) ? size : size / 2);
        if (s == 0) {
            if (draw(3) == 0) {
                bytes[draw((uint32_t)size)] ^= 1;
            }
            s = FROM_BYTES(to, bytes, size, &again);
        }
        free(bytes);
    }
    if (s == 0) {
        s = COPY(Set)(to, again == NULL ? copy : again);
    }
    COPY(Free)(from, &copy);
    COPY(Free)(to, &again);
    return s;
}

static status call(void *instance, void *other)
{
    double at = fmu_time(instance);
    switch (draw(22)) {
    case 0:
        return begin(instance);
    case 1:
        return F(ExitInitializationMode)(instance);
    case 2:
        return F(EnterEventMode)(instance);
    case 3:
        return F(EnterContinuousTimeMode)(instance);
    case 4:
#if VERSION == 3
        return fmi3EnterStepMode(instance);
#endif
    case 5:
        return update_discrete(instance);
    case 6:
    case 7:
        return step(instance, at);
    case 8:
        return draw(20) ? 0 : F(Terminate)(instance);
    case 9:
        return draw(10) ? 0 : F(Reset)(instance);
    case 10:
        return F(SetTime)(instance, moment(at));
    case 11:
        return copies(instance, draw(2) ? instance : other);
    case 12: {
#if VERSION == 3
        bool event, ends;
#else
        int event, ends;
#endif
        return F(CompletedIntegratorStep)(instance, true, &event, draw(20) ? &ends : NULL);
    }
    case 13:
    case 14:
    case 15:
        return logged(instance, draw(3));
    case 16:
    case 17:
        return directional(instance);
    default:
        return arrays(instance, draw(5));
    }
}

static void *made(void)
{
#if VERSION == 3
    return draw(2) ? fmi3InstantiateModelExchange("x", fsm_fmu_token, NULL, false, draw(2), NULL, NULL)
                   : fmi3InstantiateCoSimulation("x", fsm_fmu_token, NULL, false, draw(2), draw(2), draw(2), NULL, 0,
                                                 NULL, NULL, NULL);
#else
    return fmi2Instantiate("x", draw(2) ? fmi2ModelExchange : fmi2CoSimulation, fsm_fmu_token, NULL, NULL, 0,
                           (int)draw(2));
#endif
}

int main(int count, char **arguments)
{
    long sequences = count > 1 ? strtol(arguments[1], NULL, 10) : 100, good = 0, refused = 0;
    for (long k = 0; k < sequences; k++) {
        void *pair[] = {made(), made()};
        for (uint32_t calls = 5 + draw(60); calls > 0; calls--) {
            uint32_t which = draw(2);
            status s = call(pair[which], pair[1 - which]);
            if (s != 0 && s != 2 && s != 3) { // OK, discarded, an error
                printf("status %d\n", (int)s);
                return 1;
            }
            good += s == 0;
            refused += s == 3;
        }
        for (int i = 0; i < 2; i++) {
#if VERSION == 3
            status s = F(Reset)(pair[i]) || fmi3EnterInitializationMode(pair[i], false, 0.0, 0.0, false, 0.0);
#else
            status s = F(Reset)(pair[i]) || F(EnterInitializationMode)(pair[i]);
#endif
            if (s != 0 || F(ExitInitializationMode)(pair[i]) != 0 || update_discrete(NULL) != 3) {
                printf("does not start again\n");
                return 1;
            }
        }
        F(FreeInstance)(pair[0]);
        F(FreeInstance)(pair[1]);
    }
    printf("%ld sequences: %ld calls good, %ld refused\n", sequences, good, refused);
    return 0;
}
