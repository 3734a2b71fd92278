//! Why recorded drains took so long: as text, as JSON, as a page and as a picture.
//!
//! It must not know where recordings are, what was typed, or where a report goes.
#![deny(missing_docs)]

mod axis;
mod causes;
mod document;
mod drain;
mod html;
mod overview;
mod savings;
mod shadows;
mod svg;
mod text;
mod theme;

use std::path::PathBuf;

use scupper_recording::{Difference, ReadError};
use scupper_report::PodList;
use serde_json::Value;

use axis::Axis;
pub use causes::{Kind, Total, last_of_drain as last_wait, of_drain as waits_of};
use drain::Report;
pub use shadows::shadow_to_json;
pub use text::few;

/// Bytes of a foreign text.
const TEXT: usize = 300;

/// Why a recording has no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Another version has recorded it.
    #[error("{}: this program's engine does not do what Scupper {program} recorded; use that version. First difference: {difference}", .path.display())]
    Differs {
        /// The recording.
        path: PathBuf,
        /// The version that has recorded it.
        program: String,
        /// Where the engine does something else.
        difference: Box<Difference>,
    },
}

/// The drains of a report, in the order in which they were named, on one axis.
#[derive(Debug)]
pub struct Reports {
    drains: Vec<Report>,
    axis: Axis,
}

impl Reports {
    /// Reads these recordings.
    pub fn of(files: &[PathBuf]) -> Result<Self, ReportError> {
        let drains = files.iter().map(|file| Report::of(file));
        let drains = drains.collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            axis: Axis::of(&drains),
            drains,
        })
    }

    /// Of any of them.
    fn have_forecasts(&self) -> bool {
        let mut drains = self.drains.iter();
        drains.any(|report| report.recording.estimate.is_some())
    }

    /// As Markdown.
    pub fn markdown(&self, list: PodList) -> String {
        text::markdown(self, list)
    }

    /// One object for each drain.
    pub fn documents(&self) -> impl Iterator<Item = Value> {
        self.drains.iter().map(document::of)
    }

    /// As a page of HTML.
    pub fn page(&self) -> String {
        html::page(self)
    }

    /// The charts alone, as a picture.
    pub fn picture(&self) -> String {
        svg::chart(self)
    }
}

#[cfg(test)]
mod tests;
