//! Grants of `http`: where a policy may send requests.

mod grant;
mod rules;
mod url;
mod wants;

pub use grant::{HTTP_METHODS, HTTP_PATH_RULE, HttpGrant, Networks, is_http_path, read_http_origin};
pub use rules::{HttpGrantError, HttpRule, HttpRules, PathPrefix};
pub use url::{HttpUrl, Origin, UrlError, shown_url};
pub use wants::{HttpWant, HttpWantError, grant_yaml, simple_grant};
