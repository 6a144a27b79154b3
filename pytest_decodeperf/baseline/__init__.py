"""Stored samples with provenance: what a measurement is compared with."""
