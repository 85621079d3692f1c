"""The search for a learning rate: range test, trials and choice. Private."""
