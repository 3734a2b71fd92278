//! Namespaces: their labels and annotations.

use scupper_api::facts::{FactKind, Metadata, Namespace};

use super::cache::{Answer, AskError, Facts};
use super::caller::FactCaller;
use crate::wit::bindings::scupper::drain::facts;
use crate::wit::to_wit_owned::entries;

impl Facts {
    /// A namespace. Where nothing is asked, each exists.
    pub(crate) async fn namespace(&self, caller: &FactCaller, name: &str) -> Answer<facts::Namespace> {
        let mut reader = self.reader(caller).await;
        let place = (String::new(), name.to_owned());
        let found = reader.one::<Namespace>(FactKind::Namespace, place).await?;
        let found = found.or_else(|| reader.is_blank().then(Namespace::default));
        let absent = || AskError::NotFound(format!("there is no namespace {name}"));
        let Metadata {
            labels,
            annotations,
            deletion,
            ..
        } = found.ok_or_else(absent)?.metadata;
        Ok(facts::Namespace {
            name: name.to_owned(),
            labels: entries(labels),
            annotations: entries(annotations),
            deletion_timestamp: deletion.map(|deletion| deletion.as_millis()),
        })
    }
}
