//! The flags by which a delegated drain may relax the driver's configuration.

/// A flag of `scupper drain`, as a LifecycleEvent carries it to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Override {
    /// `--force` where the driver has `force: false`.
    Force,
    /// `--delete-emptydir-data` where the driver has `delete-emptydir-data: false`.
    DeleteEmptydirData,
    /// `--ignore-daemonsets` where the driver has `ignore-daemonsets: false`.
    IgnoreDaemonsets,
    /// `--local-data=warn` where the driver has `local-data: refuse`.
    LocalData,
    /// A `--grace-period` that is shorter than the driver's, or than a pod's own.
    GracePeriod,
    /// A `--timeout` that is longer than the driver's `sla`.
    Timeout,
    /// `at-deadline` also before the deadline that a shorter `--timeout` sets.
    AtDeadline,
}

/// Their names, for the table of shapes.
pub(super) const NAMES: &[&str] = &[
    Override::Force.name(),
    Override::DeleteEmptydirData.name(),
    Override::IgnoreDaemonsets.name(),
    Override::LocalData.name(),
    Override::GracePeriod.name(),
    Override::Timeout.name(),
    Override::AtDeadline.name(),
];

impl Override {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Force,
        Self::DeleteEmptydirData,
        Self::IgnoreDaemonsets,
        Self::LocalData,
        Self::GracePeriod,
        Self::Timeout,
        Self::AtDeadline,
    ];

    /// As it is written: the flag without its dashes, or the setting.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Force => "force",
            Self::DeleteEmptydirData => "delete-emptydir-data",
            Self::IgnoreDaemonsets => "ignore-daemonsets",
            Self::LocalData => "local-data",
            Self::GracePeriod => "grace-period",
            Self::Timeout => "timeout",
            Self::AtDeadline => "at-deadline",
        }
    }

    /// The flag of this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|flag| flag.name() == name)
    }
}
