//! The credential, and Nova's URL.

use super::Compute;
use super::reading::Reader;
use crate::keystone::{Credential, Domain, Named};

/// Keystone's URL, with `/v3` at its end.
pub(super) fn auth_url(reader: &mut Reader) -> String {
    let url = reader.url("auth-url");
    let (rest, version) = url.rsplit_once('/').unwrap_or((&url, ""));
    match version {
        "v3" => url,
        "v2.0" | "v2" | "v1" => {
            reader.problem(
                "auth-url",
                format!("`{url}`: only Identity v3 is supported: set {rest}/v3"),
            );
            url
        }
        _ => format!("{url}/v3"),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Guess,
    Password,
    Application,
}

/// The credential that the keys describe.
pub(super) fn credential(reader: &mut Reader) -> Credential {
    let kind = reader.choice(
        "auth-type",
        &[
            ("", Kind::Guess),
            ("password", Kind::Password),
            ("v3password", Kind::Password),
            ("v3applicationcredential", Kind::Application),
        ],
    );
    let id = reader.text("application-credential-id");
    let name = reader.text("application-credential-name");
    let application = kind == Kind::Application || (kind == Kind::Guess && (id.is_some() || name.is_some()));
    match (application, id, name) {
        (true, Some(id), _) => Credential::ApplicationId { id },
        (true, None, Some(name)) => Credential::ApplicationName {
            name,
            user: named(reader, "user"),
        },
        (true, None, None) => {
            reader.problem(
                "application-credential-id",
                "missing: set it, or `application-credential-name` and the user",
            );
            Credential::ApplicationId { id: String::new() }
        }
        (false, ..) => Credential::Password {
            user: named(reader, "user"),
            project: named(reader, "project"),
        },
    }
}

/// `user-id`, or `username` with a domain; the same for projects.
fn named(reader: &mut Reader, what: &str) -> Named {
    let id = format!("{what}-id");
    let name_key = if what == "user" {
        "username"
    } else {
        "project-name"
    };
    if let Some(id) = reader.text(&id) {
        return Named::Id(id);
    }
    let name = reader.text(name_key).unwrap_or_else(|| {
        reader.problem(name_key, format!("missing: set it, or `{id}`"));
        String::new()
    });
    let (domain_id, domain_name) = (format!("{what}-domain-id"), format!("{what}-domain-name"));
    let domain = match (reader.text(&domain_id), reader.text(&domain_name)) {
        (Some(id), _) => Domain::Id(id),
        (None, Some(name)) => Domain::Name(name),
        (None, None) => {
            let message = format!("missing: set it, or `{domain_id}`, or `{id}` instead of the name");
            reader.problem(&domain_name, message);
            Domain::Name(String::new())
        }
    };
    Named::Name { name, domain }
}

/// The URLs that requests to Nova may use. Keystone provides the catalogue; the operator decides what is allowed.
pub(super) fn compute(reader: &mut Reader) -> Compute {
    if reader.text("compute-endpoint-override").is_some() {
        return Compute::Override(reader.url("compute-endpoint-override"));
    }
    if reader.text("compute-url").is_none() {
        reader.problem(
            "compute-url",
            "missing: set the prefix of Nova's URL in the catalogue, such as https://nova.example.com:8774, or set `compute-endpoint-override`",
        );
        return Compute::Catalogue {
            begins: String::new(),
        };
    }
    Compute::Catalogue {
        begins: reader.url("compute-url"),
    }
}
