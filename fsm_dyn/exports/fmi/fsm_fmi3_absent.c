/* FMI 3.0: what the units do not have. */

static fmi3Status refuse(fmi3Instance instance, const char *function)
{
    if (instance != NULL) {
        fmu_error(instance, "%s is not supported", function);
    }
    return fmi3Error;
}

/* Variables of a type that the unit has none of. */
#define NO_VALUES(name, type)                                                                                          \
    FMU_API fmi3Status name(fmi3Instance instance, REFERENCES, type values[], size_t n_values)                         \
    {                                                                                                                  \
        (void)references, (void)values, (void)n_values;                                                                \
        return n == 0 && instance != NULL ? fmi3OK : refuse(instance, #name);                                          \
    }

NO_VALUES(fmi3GetFloat32, float)
NO_VALUES(fmi3SetFloat32, const float)
NO_VALUES(fmi3GetInt8, int8_t)
NO_VALUES(fmi3SetInt8, const int8_t)
NO_VALUES(fmi3GetUInt8, uint8_t)
NO_VALUES(fmi3SetUInt8, const uint8_t)
NO_VALUES(fmi3GetInt16, int16_t)
NO_VALUES(fmi3SetInt16, const int16_t)
NO_VALUES(fmi3GetUInt16, uint16_t)
NO_VALUES(fmi3SetUInt16, const uint16_t)
NO_VALUES(fmi3GetInt32, int32_t)
NO_VALUES(fmi3SetInt32, const int32_t)
NO_VALUES(fmi3GetUInt32, uint32_t)
NO_VALUES(fmi3SetUInt32, const uint32_t)
NO_VALUES(fmi3GetUInt64, uint64_t)
NO_VALUES(fmi3SetUInt64, const uint64_t)
NO_VALUES(fmi3GetString, fmi3String)
NO_VALUES(fmi3SetString, const fmi3String)
NO_VALUES(fmi3SetInt64, const int64_t)

FMU_API fmi3Status fmi3GetBinary(fmi3Instance instance, const fmi3ValueReference references[], size_t n, size_t sizes[],
                                 const uint8_t *values[], size_t n_values)
{
    (void)references, (void)n, (void)sizes, (void)values, (void)n_values;
    return refuse(instance, "fmi3GetBinary");
}

FMU_API fmi3Status fmi3SetBinary(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                 const size_t sizes[], const uint8_t *const values[], size_t n_values)
{
    (void)references, (void)n, (void)sizes, (void)values, (void)n_values;
    return refuse(instance, "fmi3SetBinary");
}

FMU_API fmi3Status fmi3GetClock(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                fmi3Boolean values[])
{
    (void)references, (void)n, (void)values;
    return refuse(instance, "fmi3GetClock");
}

FMU_API fmi3Status fmi3SetClock(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                const fmi3Boolean values[])
{
    (void)references, (void)n, (void)values;
    return refuse(instance, "fmi3SetClock");
}

FMU_API fmi3Status fmi3GetNumberOfVariableDependencies(fmi3Instance instance, fmi3ValueReference reference,
                                                       size_t *count)
{
    (void)reference, (void)count;
    return refuse(instance, "fmi3GetNumberOfVariableDependencies");
}

FMU_API fmi3Status fmi3GetVariableDependencies(fmi3Instance instance, fmi3ValueReference dependent, size_t elements[],
                                               fmi3ValueReference independents[], size_t of_independents[], int kinds[],
                                               size_t n)
{
    (void)dependent, (void)elements, (void)independents, (void)of_independents, (void)kinds, (void)n;
    return refuse(instance, "fmi3GetVariableDependencies");
}

FMU_API fmi3Status fmi3GetAdjointDerivative(fmi3Instance instance, const fmi3ValueReference unknowns[],
                                            size_t n_unknowns, const fmi3ValueReference knowns[], size_t n_knowns,
                                            const double seed[], size_t n_seed, double sensitivity[],
                                            size_t n_sensitivity)
{
    (void)unknowns, (void)n_unknowns, (void)knowns, (void)n_knowns, (void)seed, (void)n_seed, (void)sensitivity,
        (void)n_sensitivity;
    return refuse(instance, "fmi3GetAdjointDerivative");
}

FMU_API fmi3Status fmi3EnterConfigurationMode(fmi3Instance instance)
{
    return refuse(instance, "fmi3EnterConfigurationMode");
}

FMU_API fmi3Status fmi3ExitConfigurationMode(fmi3Instance instance)
{
    return refuse(instance, "fmi3ExitConfigurationMode");
}

FMU_API fmi3Status fmi3EvaluateDiscreteStates(fmi3Instance instance)
{
    return refuse(instance, "fmi3EvaluateDiscreteStates");
}

FMU_API fmi3Status fmi3GetIntervalDecimal(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                          double intervals[], int qualifiers[])
{
    (void)references, (void)n, (void)intervals, (void)qualifiers;
    return refuse(instance, "fmi3GetIntervalDecimal");
}

FMU_API fmi3Status fmi3GetIntervalFraction(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                           uint64_t counters[], uint64_t resolutions[], int qualifiers[])
{
    (void)references, (void)n, (void)counters, (void)resolutions, (void)qualifiers;
    return refuse(instance, "fmi3GetIntervalFraction");
}

FMU_API fmi3Status fmi3GetShiftDecimal(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                       double shifts[])
{
    (void)references, (void)n, (void)shifts;
    return refuse(instance, "fmi3GetShiftDecimal");
}

FMU_API fmi3Status fmi3GetShiftFraction(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                        uint64_t counters[], uint64_t resolutions[])
{
    (void)references, (void)n, (void)counters, (void)resolutions;
    return refuse(instance, "fmi3GetShiftFraction");
}

FMU_API fmi3Status fmi3SetIntervalDecimal(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                          const double intervals[])
{
    (void)references, (void)n, (void)intervals;
    return refuse(instance, "fmi3SetIntervalDecimal");
}

FMU_API fmi3Status fmi3SetIntervalFraction(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                           const uint64_t counters[], const uint64_t resolutions[])
{
    (void)references, (void)n, (void)counters, (void)resolutions;
    return refuse(instance, "fmi3SetIntervalFraction");
}

FMU_API fmi3Status fmi3SetShiftDecimal(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                       const double shifts[])
{
    (void)references, (void)n, (void)shifts;
    return refuse(instance, "fmi3SetShiftDecimal");
}

FMU_API fmi3Status fmi3SetShiftFraction(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                        const uint64_t counters[], const uint64_t resolutions[])
{
    (void)references, (void)n, (void)counters, (void)resolutions;
    return refuse(instance, "fmi3SetShiftFraction");
}

FMU_API fmi3Status fmi3GetOutputDerivatives(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                            const int32_t orders[], double values[], size_t n_values)
{
    (void)references, (void)n, (void)orders, (void)values, (void)n_values;
    return refuse(instance, "fmi3GetOutputDerivatives");
}

FMU_API fmi3Status fmi3ActivateModelPartition(fmi3Instance instance, fmi3ValueReference clock, double time)
{
    (void)clock, (void)time;
    return refuse(instance, "fmi3ActivateModelPartition");
}

FMU_API fmi3Instance fmi3InstantiateScheduledExecution(fmi3String name, fmi3String token, fmi3String path,
                                                       fmi3Boolean visible, fmi3Boolean logs,
                                                       fmi3InstanceEnvironment environment,
                                                       fmi3LogMessageCallback logger, fmi3Callback update,
                                                       fmi3Callback lock, fmi3Callback unlock)
{
    (void)name, (void)token, (void)path, (void)visible, (void)logs, (void)environment, (void)logger, (void)update,
        (void)lock, (void)unlock;
    return NULL;
}
