//! Which claims only one node can use, for pre-flight findings.

use std::collections::{BTreeMap, BTreeSet};

use scupper_api::facts::{
    FactKind, FactQuery, FactType as _, PersistentVolume, PersistentVolumeClaim, Selection,
};
use scupper_engine::VolumeClaim;

use super::{Cluster, ReadError};

/// Up to this many claims of a namespace, or volumes, are read one by one; more of them with one list.
const MOST_SINGLE_READS: usize = 4;

impl Cluster {
    /// Returns those of these claims whose data only this node can use, with the names of their volumes. A claim that
    /// is not bound has no data.
    pub async fn local_claims(
        &self,
        node: &str,
        claims: &BTreeSet<VolumeClaim>,
    ) -> Result<BTreeMap<VolumeClaim, String>, ReadError> {
        let bound = self.bound_claims(claims).await?;
        let names: BTreeSet<&str> = bound.values().map(String::as_str).collect();
        let volumes = self.volumes_named(&names).await?;
        let is_local = |name: &String| volumes.iter().any(|it| it.name == *name && it.is_local_to(node));
        Ok(bound.into_iter().filter(|(_, name)| is_local(name)).collect())
    }

    /// The names of the volumes that these claims are bound to.
    pub(super) async fn bound_claims(
        &self,
        claims: &BTreeSet<VolumeClaim>,
    ) -> Result<BTreeMap<VolumeClaim, String>, ReadError> {
        let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for claim in claims {
            names.entry(&claim.namespace).or_default().push(&claim.name);
        }
        let mut found = Vec::new();
        for (namespace, names) in names {
            if names.len() > MOST_SINGLE_READS {
                let (namespace, kind) = (namespace.to_owned(), FactKind::PersistentVolumeClaim);
                let places = names.iter().map(|name| (namespace.clone(), (*name).to_owned()));
                let selection = Selection::These {
                    places: places.collect(),
                    namespace: Some(namespace),
                };
                let listed = self.ask(&FactQuery { kind, selection }).await?;
                found.extend(listed.iter().filter_map(PersistentVolumeClaim::of).cloned());
                continue;
            }
            for name in names {
                let place = (namespace.to_owned(), name.to_owned());
                found.extend(
                    self.ask_one::<PersistentVolumeClaim>(FactKind::PersistentVolumeClaim, place)
                        .await?,
                );
            }
        }
        let bound = found.into_iter().filter(|claim| !claim.volume.is_empty());
        let named = bound.map(|claim| {
            let name = VolumeClaim {
                namespace: claim.namespace,
                name: claim.name,
            };
            (name, claim.volume)
        });
        Ok(named.filter(|(name, _)| claims.contains(name)).collect())
    }

    async fn volumes_named(&self, names: &BTreeSet<&str>) -> Result<Vec<PersistentVolume>, ReadError> {
        if names.len() > MOST_SINGLE_READS {
            let all = self.ask(&FactQuery::all(FactKind::PersistentVolume)).await?;
            return Ok(all.iter().filter_map(PersistentVolume::of).cloned().collect());
        }
        let mut found = Vec::new();
        for name in names {
            let place = (String::new(), (*name).to_owned());
            found.extend(
                self.ask_one::<PersistentVolume>(FactKind::PersistentVolume, place)
                    .await?,
            );
        }
        Ok(found)
    }
}
