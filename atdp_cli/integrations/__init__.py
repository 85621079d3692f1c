"""atdp inside other people's trainers; nothing of atdp imports this room."""
