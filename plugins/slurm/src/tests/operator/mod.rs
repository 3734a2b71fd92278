//! The way through slurm-operator.

mod giving_reasons;
mod waiting;
