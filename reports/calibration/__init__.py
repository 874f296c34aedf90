"""The fit of lambda to scores of correct runs (docs/calibration.md)."""
