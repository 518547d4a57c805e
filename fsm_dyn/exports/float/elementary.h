/* Elementary functions of floats, computed in floats: the same bits wherever floats are IEEE's, as for doubles. */

#ifndef FSM_ELEMENTARY_H
#define FSM_ELEMENTARY_H

#include "types.h"

FSM_API float fsm_sin(float x);
FSM_API float fsm_cos(float x);
FSM_API void fsm_sin_cos(float x, float *both);
FSM_API float fsm_tan(float x);
FSM_API float fsm_atan2(float y, float x);
FSM_API float fsm_atan(float x);
FSM_API float fsm_asin(float x);
FSM_API float fsm_acos(float x);
FSM_API float fsm_exp(float x);
FSM_API float fsm_expm1(float x);
FSM_API float fsm_log(float x);
FSM_API float fsm_pow(float x, float y);
FSM_API float fsm_sinh(float x);
FSM_API float fsm_cosh(float x);
FSM_API float fsm_tanh(float x);
FSM_API float fsm_hypot(float x, float y);

#endif
