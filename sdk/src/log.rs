//! Lines in the driver's log, with the policy's name: `log::info!("kept {}", pod.full_name())`.

pub use crate::bindings::imports::scupper::drain::log::Level;

/// Writes one line. The host keeps at most 1024 bytes of it.
pub fn write(level: Level, message: &str) {
    crate::host::log::write(level, message);
}

/// Writes a line for whoever debugs the policy, formatted like [`format!`].
#[doc(hidden)]
#[macro_export]
macro_rules! __debug {
    ($($arg:tt)+) => { $crate::log::write($crate::log::Level::Debug, &::std::format!($($arg)+)) };
}

/// Writes a line for whoever runs the driver, formatted like [`format!`].
#[doc(hidden)]
#[macro_export]
macro_rules! __info {
    ($($arg:tt)+) => { $crate::log::write($crate::log::Level::Info, &::std::format!($($arg)+)) };
}

/// Writes a line about something that somebody should look at, formatted like [`format!`].
#[doc(hidden)]
#[macro_export]
macro_rules! __warn {
    ($($arg:tt)+) => { $crate::log::write($crate::log::Level::Warn, &::std::format!($($arg)+)) };
}

/// Writes a line about something that went wrong, formatted like [`format!`].
#[doc(hidden)]
#[macro_export]
macro_rules! __error {
    ($($arg:tt)+) => { $crate::log::write($crate::log::Level::Error, &::std::format!($($arg)+)) };
}

#[doc(inline)]
pub use crate::{__debug as debug, __error as error, __info as info, __warn as warn};
