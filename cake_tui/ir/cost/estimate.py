"""An estimate: a predicted time with the terms it was made of, and the error the model itself expects."""

from __future__ import annotations

import msgspec


class Estimate(msgspec.Struct, frozen=True):
    """What the model expects of one program on one shape.

    `roofline_us` comes from the program and the device alone; `predicted_us` is that times what measurements of this
    device taught; `error` is the expected standard deviation of ln(measured / predicted). `terms` are the features
    that the correction weighs, dimensionless. An estimate that abstains has `abstains` set to the reason and never
    screens anything out.
    """

    structure: str
    roofline_us: float
    predicted_us: float
    terms: tuple[tuple[str, float], ...] = ()
    error: float = 1.0
    flops: float = 0.0  # that the program does, work on tails included
    bound_by: str = ""
    abstains: str | None = None


class CostRow(msgspec.Struct, frozen=True):
    """One measurement for the correction: the estimate's structure, roofline and terms, and the measured time."""

    structure: str
    roofline_us: float
    terms: tuple[tuple[str, float], ...]
    measured_us: float

    @classmethod
    def of(cls, estimate: Estimate, measured_us: float) -> CostRow:
        """Keep what the correction needs of an estimate, with the time that was measured."""
        return cls(estimate.structure, estimate.roofline_us, estimate.terms, measured_us)
