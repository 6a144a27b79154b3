"""What a person reads at the end: header, table, findings."""
