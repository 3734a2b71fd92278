//! The service catalogue: Nova's URL by region and interface. It never guesses between regions.

use std::collections::BTreeSet;

use serde::Deserialize;

/// The intended users of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interface {
    Public,
    Internal,
    Admin,
}

impl Interface {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Internal => "internal",
            Self::Admin => "admin",
        }
    }
}

/// `token.catalog[]`
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Catalog(Vec<Service>);

#[derive(Debug, Deserialize)]
struct Service {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    endpoints: Vec<Endpoint>,
}

#[derive(Debug, Deserialize)]
struct Endpoint {
    interface: String,
    region_id: Option<String>,
    region: Option<String>,
    url: String,
}

impl Endpoint {
    fn region(&self) -> &str {
        let region = self.region_id.as_ref().or(self.region.as_ref());
        region.map_or("", String::as_str)
    }
}

impl Catalog {
    /// Nova's URL, or why there is none.
    pub(crate) fn compute(&self, region: Option<&str>, interface: Interface) -> Result<String, String> {
        let kinds = ["compute", "compute_legacy"];
        let of = |kind| self.0.iter().filter(move |service| service.kind == kind);
        let endpoints: Vec<&Endpoint> = kinds
            .into_iter()
            .map(|kind| {
                let all = of(kind).flat_map(|service| &service.endpoints);
                let fitting = all.filter(|endpoint| endpoint.interface == interface.as_str());
                fitting.collect::<Vec<_>>()
            })
            .find(|endpoints| !endpoints.is_empty())
            .unwrap_or_default();
        let face = interface.as_str();
        if endpoints.is_empty() {
            return Err(format!(
                "the catalogue has no {face} endpoint of type `compute`; check `interface` and the project's permissions"
            ));
        }
        let regions: BTreeSet<&str> = endpoints.iter().map(|endpoint| endpoint.region()).collect();
        let known = || regions.iter().copied().collect::<Vec<_>>().join(", ");
        let found = match region {
            Some(region) => {
                let found = endpoints.iter().find(|endpoint| endpoint.region() == region);
                found.ok_or_else(|| {
                    format!(
                        "no region `{region}` with a {face} compute endpoint; known regions: {}",
                        known()
                    )
                })?
            }
            None if regions.len() > 1 => {
                return Err(format!(
                    "Nova is in several regions ({}): set `region-name`",
                    known()
                ));
            }
            None => endpoints.first().ok_or_else(String::new)?,
        };
        Ok(found.url.trim_end_matches('/').to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog() -> Catalog {
        let endpoint = |interface: &str, region: &str, url: &str| serde_json::json!({"interface": interface, "region_id": region, "region": region, "url": url});
        let catalog = serde_json::json!([
            {"type": "identity", "endpoints": [endpoint("public", "one", "https://keystone/v3")]},
            {"type": "compute", "endpoints": [
                endpoint("public", "one", "https://nova.one/compute/v2.1/"),
                endpoint("internal", "one", "http://10.0.0.1:8774/v2.1"),
                endpoint("public", "two", "https://nova.two/v2.1"),
            ]},
        ]);
        serde_json::from_value(catalog).unwrap()
    }

    #[test]
    fn region_and_interface_select_the_endpoint_with_its_path() {
        let url = catalog().compute(Some("one"), Interface::Public);
        assert_eq!(url.as_deref(), Ok("https://nova.one/compute/v2.1"));
        let url = catalog().compute(None, Interface::Internal);
        assert_eq!(url.as_deref(), Ok("http://10.0.0.1:8774/v2.1"));
    }

    #[test]
    fn several_regions_without_region_name_are_an_error() {
        let error = catalog().compute(None, Interface::Public).unwrap_err();
        assert!(
            error.contains("one, two") && error.contains("region-name"),
            "{error}"
        );
    }

    #[test]
    fn the_error_for_an_unknown_region_or_interface_lists_the_known_ones() {
        let error = catalog().compute(Some("three"), Interface::Public).unwrap_err();
        assert!(error.contains("`three`") && error.contains("one, two"), "{error}");
        let error = catalog().compute(None, Interface::Admin).unwrap_err();
        assert!(error.contains("no admin endpoint"), "{error}");
        assert!(Catalog::default().compute(None, Interface::Public).is_err());
    }

    #[test]
    fn the_type_of_an_older_catalogue_is_accepted() {
        let catalog: Catalog = serde_json::from_str(
            r#"[{"type": "compute_legacy", "endpoints": [{"interface": "public", "region": "r", "url": "http://n/v2/p1"}]}]"#,
        )
        .unwrap();
        let url = catalog.compute(Some("r"), Interface::Public);
        assert_eq!(url.as_deref(), Ok("http://n/v2/p1"));
    }
}
