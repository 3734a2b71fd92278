//! Keystone's description of a token. The token itself is in a header that this policy never sees.

use serde::Deserialize;

use super::Catalog;
use crate::clock;

/// A token is renewed at least this long before it expires, in milliseconds.
const MARGIN: u64 = 60_000;

/// The body of the response to a login.
#[derive(Debug, Deserialize)]
pub(crate) struct Token {
    expires_at: String,
    #[serde(default)]
    issued_at: String,
    #[serde(default)]
    pub(crate) catalog: Catalog,
    #[serde(default)]
    user: User,
}

#[derive(Debug, Default, Deserialize)]
struct User {
    #[serde(default)]
    id: String,
}

#[derive(Deserialize)]
struct Answer {
    token: Token,
}

impl Token {
    pub(crate) fn read(body: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice::<Answer>(body).map(|answer| answer.token)
    }

    /// The user id of our migrations.
    pub(crate) fn user(&self) -> &str {
        &self.user.id
    }

    /// How long to use it, in milliseconds: until the last tenth of its lifetime, at most the last minute. Both times are
    /// Keystone's, so our clock does not matter.
    pub(crate) fn good_for(&self) -> u64 {
        let begin = clock::iso(&self.issued_at).unwrap_or_default();
        let life = clock::iso(&self.expires_at)
            .unwrap_or_default()
            .saturating_sub(begin);
        life - (life / 10).min(MARGIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_renewed_before_it_ends() {
        let good_for = |expires: &str| {
            let body = format!(
                r#"{{"token": {{"issued_at": "2026-11-21T13:00:00.000000Z", "expires_at": "{expires}", "user": {{"id": "u1"}}}}}}"#
            );
            let token = Token::read(body.as_bytes()).unwrap();
            assert_eq!(token.user(), "u1");
            token.good_for()
        };
        assert_eq!(good_for("2026-11-21T14:00:00.000000Z"), 59 * 60_000);
        assert_eq!(good_for("2026-11-21T13:00:20.000000Z"), 18_000);
    }
}
