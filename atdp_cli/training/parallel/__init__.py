"""Training in several processes: collectives, ranks, sharded models. Private."""
