"""Files on disk: atomic writes, locks, private folders, compression, bounded reading. Private."""
