//! The credential: a user with a password, or an application credential. The host inserts the secret.

use serde_json::{Value, json};

/// The names of the secrets that the operator grants.
pub(crate) const PASSWORD: &str = "password";
pub(crate) const APPLICATION_SECRET: &str = "application-credential-secret";

/// A user or project: an id, or a name in a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    Id(String),
    Name { name: String, domain: Domain },
}

/// A domain, by id or by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Domain {
    Id(String),
    Name(String),
}

/// What the login sends to Keystone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Credential {
    Password { user: Named, project: Named },
    ApplicationId { id: String },
    ApplicationName { name: String, user: Named },
}

impl Credential {
    /// The body of the login, with an empty string in place of the secret.
    pub(crate) fn body(&self) -> Value {
        match self {
            Self::Password { user, project } => {
                let mut user = user.json();
                put(&mut user, "password", json!(""));
                json!({"auth": {
                    "identity": {"methods": ["password"], "password": {"user": user}},
                    "scope": {"project": project.json()},
                }})
            }
            // An application credential includes its project; requesting a scope is an error.
            Self::ApplicationId { id } => application(json!({"id": id, "secret": ""})),
            Self::ApplicationName { name, user } => {
                application(json!({"name": name, "user": user.json(), "secret": ""}))
            }
        }
    }

    /// The JSON pointer to the secret in the body.
    pub(crate) const fn pointer(&self) -> &'static str {
        match self {
            Self::Password { .. } => "/auth/identity/password/user/password",
            Self::ApplicationId { .. } | Self::ApplicationName { .. } => {
                "/auth/identity/application_credential/secret"
            }
        }
    }

    /// The name of the secret.
    pub(crate) const fn secret(&self) -> &'static str {
        match self {
            Self::Password { .. } => PASSWORD,
            Self::ApplicationId { .. } | Self::ApplicationName { .. } => APPLICATION_SECRET,
        }
    }
}

impl Named {
    fn json(&self) -> Value {
        match self {
            Self::Id(id) => json!({"id": id}),
            Self::Name { name, domain } => {
                let domain = match domain {
                    Domain::Id(id) => json!({"id": id}),
                    Domain::Name(name) => json!({"name": name}),
                };
                json!({"name": name, "domain": domain})
            }
        }
    }
}

fn application(credential: Value) -> Value {
    json!({"auth": {"identity": {
        "methods": ["application_credential"],
        "application_credential": credential,
    }}})
}

fn put(object: &mut Value, key: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert(key.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alice() -> Named {
        Named::Name {
            name: "alice".to_owned(),
            domain: Domain::Name("Default".to_owned()),
        }
    }

    #[test]
    fn a_password_login_names_user_project_and_domains() {
        let login = Credential::Password {
            user: alice(),
            project: Named::Id("p1".to_owned()),
        };
        assert_eq!(
            login.body(),
            json!({"auth": {
                "identity": {"methods": ["password"], "password": {"user":
                    {"name": "alice", "domain": {"name": "Default"}, "password": ""}}},
                "scope": {"project": {"id": "p1"}},
            }})
        );
        assert_eq!(login.body().pointer(login.pointer()), Some(&json!("")));
    }

    #[test]
    fn an_application_credential_asks_for_no_scope() {
        for login in [
            Credential::ApplicationId { id: "c1".to_owned() },
            Credential::ApplicationName {
                name: "drain".to_owned(),
                user: alice(),
            },
        ] {
            let body = login.body();
            assert_eq!(body.pointer("/auth/scope"), None);
            assert_eq!(body.pointer(login.pointer()), Some(&json!("")));
            assert_eq!(login.secret(), APPLICATION_SECRET);
        }
    }
}
