//! Grants of `http`: the origins to which a policy may send requests.

mod grant;
mod rules;
mod target;
mod url;

pub use grant::{HTTP_METHODS, HTTP_PATH_RULE, HttpGrant, Networks, is_http_path, read_http_origin};
pub use rules::{HttpGrantError, HttpRule, HttpRules, PathPrefix};
pub use target::{HttpTargetError, HttpWant, grant_yaml};
pub use url::{HttpUrl, Origin, UrlError, shown_url};
