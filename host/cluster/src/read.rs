//! Single reads: the node, its pods, and whether the user may read them.

use http::Request;
use scupper_engine::{Node, Pod};
use serde::de::DeserializeOwned;

use super::listing::{self, Source};
use super::node::WireNode;
use super::pod::WirePod;
use super::transport::{self, Fault, escaped};
use super::wire::{MetaOnly, Page};
use super::{Cluster, ReadError};

impl Cluster {
    /// Reads the node; `None` if it does not exist.
    pub async fn node(&self, name: &str) -> Result<Option<Node>, ReadError> {
        let path = format!("/api/v1/nodes/{}", escaped(name));
        let found = self.find::<WireNode>(&path, &format!("node {name}")).await?;
        Ok(found.map(|node| self.to_node(node, &mut None)))
    }

    /// Reads a list; `what` says in an error what was read.
    pub(super) async fn read_list<T: DeserializeOwned>(
        &self,
        source: &Source,
        what: &str,
    ) -> Result<Vec<T>, ReadError> {
        let listed = listing::list::<T>(self.client(), source, self.options()).await;
        Ok(listed.map_err(|fault| fault.read(what))?.0)
    }

    /// The same for a caller that keeps less of each object than is read.
    pub(super) async fn read_reduced<T: DeserializeOwned, U>(
        &self,
        source: &Source,
        what: &str,
        reduce: impl Fn(T) -> U,
    ) -> Result<Vec<U>, ReadError> {
        let mut objects = Vec::new();
        let each = |object| objects.push(reduce(object));
        let listed = listing::for_each(self.client(), source, self.options(), each).await;
        listed.map_err(|fault| fault.read(what))?;
        Ok(objects)
    }

    /// Reads the names of the nodes with these labels.
    pub async fn nodes_with(&self, selector: &str) -> Result<Vec<String>, ReadError> {
        let source = Source {
            path: "/api/v1/nodes".to_owned(),
            selector: Some(format!("labelSelector={}", escaped(selector))),
            optional: false,
        };
        let name = |node: MetaOnly| node.metadata.name;
        self.read_reduced(&source, "list nodes", name).await
    }

    /// Reads all nodes.
    pub async fn nodes(&self) -> Result<Vec<Node>, ReadError> {
        let source = Source::all("/api/v1/nodes".to_owned());
        let node = |node| self.to_node(node, &mut None);
        self.read_reduced(&source, "list nodes", node).await
    }

    /// Checks that the node exists and its pods are readable: an unknown node, a missing right and a dead server differ.
    pub async fn preflight(&self, node: &str) -> Result<(), ReadError> {
        let found = self.node(node).await?;
        found.ok_or_else(|| ReadError::NotFound {
            what: format!("node {node}"),
        })?;
        let page = format!(
            "/api/v1/pods?fieldSelector=spec.nodeName={}&limit=1",
            escaped(node)
        );
        let page = self.get::<Page<MetaOnly>>(&page).await;
        page.map(|_| ()).map_err(|fault| fault.read("list pods"))
    }

    /// Reads the node's pods, consistently instead of from a cache.
    pub async fn pods(&self, node: &str) -> Result<Vec<Pod>, ReadError> {
        let mut pods = self
            .read_reduced(&pods_of(node), "list pods", WirePod::into_engine)
            .await?;
        self.mark_missing(&mut pods, false).await;
        Ok(pods)
    }

    /// Reads the pods of a node with these labels.
    pub async fn pods_with(&self, node: &str, selector: &str) -> Result<Vec<Pod>, ReadError> {
        let mut source = pods_of(node);
        let add = |it| format!("{it}&labelSelector={}", escaped(selector));
        source.selector = source.selector.map(add);
        self.read_reduced(&source, "list pods", WirePod::into_engine)
            .await
    }

    /// Reads one object; `None` if it does not exist.
    pub(super) async fn find<T: DeserializeOwned>(
        &self,
        path: &str,
        what: &str,
    ) -> Result<Option<T>, ReadError> {
        match self.get(path).await {
            Ok(found) => Ok(Some(found)),
            Err(fault) if fault.is_not_found() => Ok(None),
            Err(fault) => Err(fault.read(&format!("get {what}"))),
        }
    }

    /// Reads one object.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Fault> {
        let request = Request::get(path)
            .body(Vec::new())
            .map_err(|error| Fault::Malformed(error.to_string()))?;
        transport::call(self.client(), request, self.options().request_timeout).await
    }
}

/// The pods of a node.
pub(super) fn pods_of(node: &str) -> Source {
    Source {
        path: "/api/v1/pods".to_owned(),
        selector: Some(format!("fieldSelector=spec.nodeName={}", escaped(node))),
        optional: false,
    }
}

/// The node of that name.
pub(super) fn nodes(name: &str) -> Source {
    Source {
        path: "/api/v1/nodes".to_owned(),
        selector: Some(format!("fieldSelector=metadata.name={}", escaped(name))),
        optional: false,
    }
}
