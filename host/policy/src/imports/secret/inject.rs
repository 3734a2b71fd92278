//! A secret in a field of a JSON body.

use scupper_common::text::one_line;
use serde_json::Value;
use thiserror::Error;

use super::SecretString;

/// Bytes of a wrong pointer that an error shows.
const SHOWN_BYTES: usize = 120;

/// Why a secret cannot be put into a body.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum InjectError {
    #[error("the body has fields for secrets and is not JSON (line {line}, column {column})")]
    NotJson { line: usize, column: usize },
    #[error("`{0}` must be a JSON pointer to a string of the body, such as /auth/password")]
    NoString(String),
}

/// Replaces the strings at these pointers (RFC 6901) with secrets.
pub(crate) fn inject(body: &[u8], fields: &[(&str, SecretString)]) -> Result<Vec<u8>, InjectError> {
    if fields.is_empty() {
        return Ok(body.to_vec());
    }
    let not_json = |error: serde_json::Error| InjectError::NotJson {
        line: error.line(),
        column: error.column(),
    };
    let mut json: Value = serde_json::from_slice(body).map_err(not_json)?;
    for (pointer, secret) in fields {
        match json.pointer_mut(pointer) {
            Some(Value::String(text)) => secret.reveal().clone_into(text),
            _ => return Err(InjectError::NoString(one_line(pointer, SHOWN_BYTES))),
        }
    }
    serde_json::to_vec(&json).map_err(not_json)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(body: &str, pointer: &str, value: &str) -> Result<String, InjectError> {
        let secret = SecretString::new("password", value);
        let body = inject(body.as_bytes(), &[(pointer, secret)])?;
        Ok(String::from_utf8(body).unwrap())
    }

    #[test]
    fn a_string_is_replaced_and_escaped() {
        let body = r#"{"auth": {"a/b": ["x", ""], "n": 1.5, "big": 18446744073709551615}}"#;
        assert_eq!(
            put(body, "/auth/a~1b/1", "a\"b\\c\u{7}ü").unwrap(),
            r#"{"auth":{"a/b":["x","a\"b\\c\u0007ü"],"big":18446744073709551615,"n":1.5}}"#
        );
        assert_eq!(put("\"x\"", "", "word").unwrap(), "\"word\"");
    }

    #[test]
    fn a_pointer_leads_to_a_string() {
        for pointer in [
            "/auth",
            "/auth/none",
            "auth/a",
            "/list/1",
            "/list/00",
            "/list/-",
            "/",
        ] {
            let wrong = put(r#"{"auth": {"a": ""}, "list": [""]}"#, pointer, "word");
            assert_eq!(wrong, Err(InjectError::NoString(pointer.to_owned())));
        }
        assert!(matches!(put("{", "/a", "word"), Err(InjectError::NotJson { .. })));
        assert!(matches!(put("", "/a", "word"), Err(InjectError::NotJson { .. })));
    }

    #[test]
    fn without_fields_a_body_stays_as_it_is() {
        assert_eq!(inject(b"\xff{", &[]).unwrap(), b"\xff{");
    }
}
