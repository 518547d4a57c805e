/* FMI 3.0, model exchange: the importer integrates and finds events, the runtime resolves them. */

FSM_API fmi3Instance fmi3InstantiateModelExchange(fmi3String, fmi3String, fmi3String, fmi3Boolean, fmi3Boolean,
                                                  fmi3InstanceEnvironment, fmi3LogMessageCallback);
FSM_API fmi3Instance fmi3InstantiateModelExchange(fmi3String name, fmi3String token, fmi3String path,
                                                  fmi3Boolean visible, fmi3Boolean logs,
                                                  fmi3InstanceEnvironment environment, fmi3LogMessageCallback logger)
{
    (void)path, (void)visible;
    struct fmu *fmu = instantiate(name, token, logs, environment, logger);
    if (fmu != NULL) {
        fmu->exchange = true;
    }
    return fmu;
}

FSM_API fmi3Status fmi3EnterContinuousTimeMode(fmi3Instance);
FSM_API fmi3Status fmi3EnterContinuousTimeMode(fmi3Instance instance)
{
    struct fmu *fmu = instance;
    if (!fmu_allows(fmu, FMU_EVENT, "fmi3EnterContinuousTimeMode")) {
        return fmi3Error;
    }
    if (!fmu->exchange || fmu->stopped) {
        fmu_error(fmu, "there is no continuous-time mode in co-simulation, nor after the end of a run");
        return fmi3Error;
    }
    fmu->phase = FMU_CONTINUOUS;
    return fmi3OK;
}

FSM_API fmi3Status fmi3SetTime(fmi3Instance, double);
FSM_API fmi3Status fmi3SetTime(fmi3Instance instance, double time)
{
    struct fmu *fmu = instance;
    return status_of(fmu_allows(fmu, FMU_CONTINUOUS, "fmi3SetTime") && fmu_set_time(fmu, time));
}

FSM_API fmi3Status fmi3SetContinuousStates(fmi3Instance, const double[], size_t);
FSM_API fmi3Status fmi3SetContinuousStates(fmi3Instance instance, const double states[], size_t n)
{
    struct fmu *fmu = instance;
    bool allowed = fmu_allows(fmu, FMU_CONTINUOUS, "fmi3SetContinuousStates");
    return status_of(allowed && fmu_has_length(fmu, n, fmu_state_count()) && fmu_set_states(fmu, states));
}

/* Whether numbers of the evaluation at the time and state that were set may be read, `n` of them. */
static bool can_read(struct fmu *fmu, const char *function, size_t n, int64_t length)
{
    return fmu_allows(fmu, READABLE, function) && fmu_has_length(fmu, n, length) && fmu_evaluate(fmu);
}

FSM_API fmi3Status fmi3GetContinuousStates(fmi3Instance, double[], size_t);
FSM_API fmi3Status fmi3GetContinuousStates(fmi3Instance instance, double values[], size_t n)
{
    struct fmu *fmu = instance;
    if (!can_read(fmu, "fmi3GetContinuousStates", n, fmu_state_count())) {
        return fmi3Error;
    }
    memcpy(values, fsm_machine_state(fmu->machine), n * sizeof *values);
    return fmi3OK;
}

FSM_API fmi3Status fmi3GetContinuousStateDerivatives(fmi3Instance, double[], size_t);
FSM_API fmi3Status fmi3GetContinuousStateDerivatives(fmi3Instance instance, double values[], size_t n)
{
    struct fmu *fmu = instance;
    if (!can_read(fmu, "fmi3GetContinuousStateDerivatives", n, fmu_state_count())) {
        return fmi3Error;
    }
    memcpy(values, fsm_machine_rates(fmu->machine), n * sizeof *values);
    return fmi3OK;
}

FSM_API fmi3Status fmi3GetEventIndicators(fmi3Instance, double[], size_t);
FSM_API fmi3Status fmi3GetEventIndicators(fmi3Instance instance, double values[], size_t n)
{
    struct fmu *fmu = instance;
    if (!can_read(fmu, "fmi3GetEventIndicators", n, fsm_fmu_indicators)) {
        return fmi3Error;
    }
    fmu_indicators(fmu, values);
    return fmi3OK;
}

FSM_API fmi3Status fmi3GetNominalsOfContinuousStates(fmi3Instance, double[], size_t);
FSM_API fmi3Status fmi3GetNominalsOfContinuousStates(fmi3Instance instance, double values[], size_t n)
{
    struct fmu *fmu = instance;
    if (!fmu_allows(fmu, READABLE, "fmi3GetNominalsOfContinuousStates") || !fmu_has_length(fmu, n, fmu_state_count())) {
        return fmi3Error;
    }
    for (size_t i = 0; i < n; i++) {
        values[i] = fsm_fmu_model->atol[i] / fsm_fmu_model->rtol;
    }
    return fmi3OK;
}

FSM_API fmi3Status fmi3CompletedIntegratorStep(fmi3Instance, fmi3Boolean, fmi3Boolean *, fmi3Boolean *);
FSM_API fmi3Status fmi3CompletedIntegratorStep(fmi3Instance instance, fmi3Boolean keeps, fmi3Boolean *event,
                                               fmi3Boolean *terminate)
{
    struct fmu *fmu = instance;
    (void)keeps;
    if (!fmu_allows(fmu, FMU_CONTINUOUS, "fmi3CompletedIntegratorStep") || event == NULL || terminate == NULL) {
        return fmi3Error;
    }
    *terminate = false;
    return status_of(fmu_end_step(fmu, event));
}

FSM_API fmi3Status fmi3GetNumberOfEventIndicators(fmi3Instance, size_t *);
FSM_API fmi3Status fmi3GetNumberOfEventIndicators(fmi3Instance instance, size_t *count)
{
    if (instance == NULL || count == NULL) {
        return fmi3Error;
    }
    *count = (size_t)fsm_fmu_indicators;
    return fmi3OK;
}

FSM_API fmi3Status fmi3GetNumberOfContinuousStates(fmi3Instance, size_t *);
FSM_API fmi3Status fmi3GetNumberOfContinuousStates(fmi3Instance instance, size_t *count)
{
    if (instance == NULL || count == NULL) {
        return fmi3Error;
    }
    *count = (size_t)fmu_state_count();
    return fmi3OK;
}
