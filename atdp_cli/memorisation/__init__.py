"""`atdp audit-corpus`: what a model has memorised of a corpus. Private."""
