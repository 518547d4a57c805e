"""A spring to the zero of a Force Dimension device through the public binding; argument: stiffness, N/m.

Writes the last position and the error numbers of the calls as JSON.
"""

import json
import sys
import time

from forcedimension_core import dhd
from forcedimension_core.dhd import expert

stiffness = float(sys.argv[1])
position = [0.0, 0.0, 0.0]
results = [min(0, dhd.open()), int(expert.enableExpertMode() or 0), expert.setWatchdog(160), dhd.enableForce(True)]
watchdog = expert.getWatchdog()
until = time.monotonic() + 1.0
while time.monotonic() < until:
    results.append(dhd.getPosition(position))
    results.append(dhd.setForce([-stiffness * x for x in position]))
    time.sleep(0.0005)
found = {"position": list(position), "failed": sum(r < 0 for r in results), "watchdog": watchdog}
sys.stdout.write(json.dumps(found))
dhd.setForce([0.0, 0.0, 0.0])
dhd.close()
