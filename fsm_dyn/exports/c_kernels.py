"""The header of exported kernels: operations that C has no operator for."""

from typing import Final

from fsm_dyn.programs.c_code import HELPERS

KERNELS_HEADER: Final = f"""\
/* Operations of the kernels; elementary functions are the runtime's own. */

#ifndef FSM_KERNELS_H
#define FSM_KERNELS_H

#include "runtime/elementary.h"

{HELPERS}
#endif
"""
