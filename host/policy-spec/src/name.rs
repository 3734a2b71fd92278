//! The rules for names of policies and secrets. They apply everywhere: in the configuration file and its schema, the
//! flags, `scupper policy new`, and the loader.

use thiserror::Error;

/// The name of the host's own first draft in plans.
const RESERVED: &str = "kubectl";

/// Plans, checkpoints, metrics, Events and file names contain the name, often beside others.
const POLICY_BYTES: usize = 40;

/// The required form of a policy's name, after "must be".
pub const POLICY_NAME_RULE: &str = "1 to 40 lower-case letters, digits and '-'";

/// The same for a schema.
pub const POLICY_NAME_PATTERN: &str = "^[a-z0-9-]{1,40}$";

/// Requests contain a secret's name, and outputs contain it in place of the value.
const SECRET_BYTES: usize = 63;

/// The required form of a secret's name, after "must be".
pub const SECRET_NAME_RULE: &str = "1 to 63 letters, digits, '-' and '_'";

/// The same for a schema.
pub const SECRET_NAME_PATTERN: &str = "^[A-Za-z0-9_-]{1,63}$";

/// Why a policy cannot have this name.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum NameError {
    /// It is empty or too long, or has other characters.
    #[error("a policy's name must be {POLICY_NAME_RULE}")]
    Form,
    /// It is reserved for the driver.
    #[error("the name `{RESERVED}` is reserved for the driver's own first draft of a plan; choose another")]
    Reserved,
}

/// Whether a policy can have this name.
pub fn check_policy_name(name: &str) -> Result<(), NameError> {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !(1..=POLICY_BYTES).contains(&name.len()) || !name.bytes().all(letter) {
        Err(NameError::Form)
    } else if name == RESERVED {
        Err(NameError::Reserved)
    } else {
        Ok(())
    }
}

/// Whether a secret can have this name.
pub fn is_secret_name(name: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=SECRET_BYTES).contains(&name.len()) && name.bytes().all(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_texts_and_the_patterns_match_the_check() {
        for (most, texts) in [
            (POLICY_BYTES, [POLICY_NAME_RULE, POLICY_NAME_PATTERN]),
            (SECRET_BYTES, [SECRET_NAME_RULE, SECRET_NAME_PATTERN]),
        ] {
            for text in texts {
                assert!(text.contains(&most.to_string()), "{most}: {text}");
            }
        }
    }

    #[test]
    fn policies() {
        for good in ["a", "1", "-", "keep-labelled-2", &"x".repeat(40)] {
            assert_eq!(check_policy_name(good), Ok(()), "{good}");
        }
        for bad in ["", "Mine", "a_b", "a b", "a/b", "ä", &"x".repeat(41)] {
            assert_eq!(check_policy_name(bad), Err(NameError::Form), "{bad}");
        }
        assert_eq!(check_policy_name("kubectl"), Err(NameError::Reserved));
    }

    #[test]
    fn secrets() {
        for good in ["token", "Keystone_2-a", &"x".repeat(63)] {
            assert!(is_secret_name(good), "{good}");
        }
        for bad in ["", "a.b", "a b", &"x".repeat(64)] {
            assert!(!is_secret_name(bad), "{bad}");
        }
    }
}
