//! Lines in the driver's log, with the policy's name: `log::info!("kept {}", pod.full_name())`.

pub use crate::bindings::imports::scupper::drain::log::Level;

/// Writes one line. The host cuts it off after 1024 bytes.
pub fn write(level: Level, message: &str) {
    crate::host::log::write(level, message);
}

/// Writes a line for debugging the policy, formatted like [`format!`].
#[doc(hidden)]
#[macro_export]
macro_rules! __debug {
    ($($arg:tt)+) => { $crate::log::write($crate::log::Level::Debug, &::std::format!($($arg)+)) };
}

/// Writes a line for operators, formatted like [`format!`].
#[doc(hidden)]
#[macro_export]
macro_rules! __info {
    ($($arg:tt)+) => { $crate::log::write($crate::log::Level::Info, &::std::format!($($arg)+)) };
}

/// Writes a line about something that needs attention, formatted like [`format!`].
#[doc(hidden)]
#[macro_export]
macro_rules! __warn {
    ($($arg:tt)+) => { $crate::log::write($crate::log::Level::Warn, &::std::format!($($arg)+)) };
}

/// Writes a line about something that failed, formatted like [`format!`].
#[doc(hidden)]
#[macro_export]
macro_rules! __error {
    ($($arg:tt)+) => { $crate::log::write($crate::log::Level::Error, &::std::format!($($arg)+)) };
}

#[doc(inline)]
pub use crate::{__debug as debug, __error as error, __info as info, __warn as warn};
