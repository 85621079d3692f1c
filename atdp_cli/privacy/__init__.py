"""What a run spends: schedules, the ledger, accountants, guarantees. Never imports torch."""
