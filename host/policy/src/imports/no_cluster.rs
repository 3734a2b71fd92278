//! For policies that run without a cluster: in dry runs, benchmarks and tests.

use std::future::ready;

use futures::FutureExt;
use futures::future::BoxFuture;
use scupper_api::facts::{FactObject, FactQuery};
use scupper_engine::{Node, Pod, PodRef, Uid};

use crate::{AccessError, ClusterAccess, FactError, PolicyEvent};

/// A cluster that is never available; it says why.
#[derive(Clone, Copy, Debug)]
pub struct NoCluster(pub &'static str);

impl NoCluster {
    fn refuse<'a, T: Send + 'a>(self) -> BoxFuture<'a, Result<T, AccessError>> {
        ready(Err(AccessError::Unavailable(self.0.to_owned()))).boxed()
    }
}

impl ClusterAccess for NoCluster {
    fn ask<'a>(&'a self, _: &'a FactQuery) -> BoxFuture<'a, Result<Vec<FactObject>, FactError>> {
        ready(Err(FactError::Unavailable(self.0.to_owned()))).boxed()
    }

    fn cluster_uid(&self) -> BoxFuture<'_, Result<Uid, AccessError>> {
        self.refuse()
    }

    fn node<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Node, AccessError>> {
        self.refuse()
    }

    fn pods<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Vec<Pod>, AccessError>> {
        self.refuse()
    }

    fn annotate_node<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), AccessError>> {
        self.refuse()
    }

    fn annotate_pod<'a>(
        &'a self,
        _: &'a PodRef,
        _: &'a str,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), AccessError>> {
        self.refuse()
    }

    fn secret<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Vec<u8>, AccessError>> {
        self.refuse()
    }

    fn emit<'a>(&'a self, _: &'a PolicyEvent<'a>) -> BoxFuture<'a, Result<(), AccessError>> {
        self.refuse()
    }
}
