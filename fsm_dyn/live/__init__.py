"""The live loop: ports, ticks, processes, recordings, passivity."""
