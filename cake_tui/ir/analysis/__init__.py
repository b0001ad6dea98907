"""Analyses of programs that laws and the cost model share: affine forms, boxes, and a machine for one block."""
