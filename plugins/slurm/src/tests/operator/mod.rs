//! The way through slurm-operator.

mod reasons;
mod waiting;
