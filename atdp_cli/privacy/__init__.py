"""Ledgers, schedules, accountants, guarantees and their words. Never imports torch. Private."""
