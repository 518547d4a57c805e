"""Whether a held mechanism can make a device buzz: conditions of passivity, the loop's response, their verdicts."""
