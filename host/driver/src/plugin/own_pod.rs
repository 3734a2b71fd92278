//! The driver's own pod, from the downward API.

use scupper_engine::{PodRef, Uid};

/// The driver's own pod; `None` outside of a pod. An incomplete identity is an error: the driver could evict itself.
pub fn own_pod_from_env(var: impl Fn(&str) -> Option<String>) -> Result<Option<PodRef>, String> {
    let read = |name| var(name).filter(|value| !value.is_empty());
    match (read("POD_NAMESPACE"), read("POD_NAME"), read("POD_UID")) {
        (None, None, None) => Ok(None),
        (Some(namespace), Some(name), Some(uid)) => Ok(Some(PodRef {
            namespace,
            name,
            uid: Uid::new(uid),
        })),
        _ => Err(
            "POD_NAMESPACE, POD_NAME and POD_UID: set all three from the downward API, or none".to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_an_identity_is_an_error() {
        let env = |set: &'static [&'static str]| {
            own_pod_from_env(move |name| set.contains(&name).then(|| format!("value of {name}")))
        };
        assert_eq!(env(&[]), Ok(None));
        assert!(env(&["POD_NAME"]).unwrap_err().contains("downward API"));
        assert!(env(&["POD_NAME", "POD_UID"]).is_err());
        assert!(env(&["POD_NAMESPACE", "POD_NAME", "POD_UID"]).unwrap().is_some());
    }
}
