//! plugins/slurm
