"""Analyses of programs that laws and lowering share: affine forms, boxes, and a machine for one block."""
