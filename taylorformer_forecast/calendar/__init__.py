"""Time stamps as numbers, cycles of the calendar, seasons, Easter."""
