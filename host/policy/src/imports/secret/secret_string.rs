//! A secret's value. Printing it shows its name.

use std::fmt;
use std::sync::Arc;

/// A value with its name.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SecretString {
    name: Arc<str>,
    value: Arc<str>,
}

impl SecretString {
    pub(crate) fn new(name: &str, value: &str) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
        }
    }

    /// The policy's name for it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The value itself, for the one request that carries it, and to search for it in the response.
    pub(crate) fn reveal(&self) -> &str {
        &self.value
    }
}

impl fmt::Debug for SecretString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[secret {}]", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_prints_its_name() {
        let hidden = SecretString::new("password", "hunter2");
        assert_eq!(format!("{:?}", Some(&hidden)), "Some([secret password])");
    }
}
