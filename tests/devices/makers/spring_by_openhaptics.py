"""A spring to the zero of a Touch through the public binding pyOpenHaptics; argument: stiffness, N/m.

Writes the last position (m), the callbacks in a second and the buttons as the last line, as JSON.
"""

import json
import sys
import time

from pyOpenHaptics import hd
from pyOpenHaptics.hd_callback import hd_callback
from pyOpenHaptics.hd_device import HapticDevice

stiffness = float(sys.argv[1])
found = {"callbacks": 0}


@hd_callback
def servo():
    transform = hd.get_transform()
    position = [1e-3 * float(transform[3][i]) for i in range(3)]
    hd.set_force([-stiffness * x for x in position])
    found.update(position=position, callbacks=found["callbacks"] + 1, buttons=hd.get_buttons())


device = HapticDevice(servo)
time.sleep(1.0)
device.close()
sys.stdout.write("\n" + json.dumps(found))
