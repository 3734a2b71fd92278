//! Lists in pages that fit into memory, however large the objects are.

use http::Request;
use serde::de::DeserializeOwned;

use super::ConnectOptions;
use super::transport::{self, Fault, LARGEST_ANSWER};
use super::wire::Page;

/// A page that is too large is read again with so much fewer objects.
const SHRINK: u32 = 8;
/// The same where all objects were read at once.
const FIRST_SIZE: u32 = 64;

/// A list, page by page. A page has no more than [`LARGEST_ANSWER`] bytes: where objects are so large that fewer fit, pages
/// have fewer.
pub(super) struct Pages<'a> {
    client: &'a kube::Client,
    options: &'a ConnectOptions,
    path: &'a str,
    /// Objects on a page; 0: all.
    size: u32,
}

impl<'a> Pages<'a> {
    pub(super) const fn of(client: &'a kube::Client, options: &'a ConnectOptions, path: &'a str) -> Self {
        Self {
            client,
            options,
            path,
            size: options.page_size,
        }
    }

    /// With no more objects on a page than this.
    pub(super) fn up_to(self, most: Option<u32>) -> Self {
        let size = match (self.size, most) {
            (size, None) => size,
            (0, Some(most)) => most,
            (size, Some(most)) => size.min(most),
        };
        Self { size, ..self }
    }

    /// Reads all pages by these requests. Returns the list's version.
    pub(super) async fn read<T: DeserializeOwned>(
        mut self,
        request: impl Fn(&str) -> Result<Request<Vec<u8>>, Fault>,
        mut each: impl FnMut(T),
    ) -> Result<String, Fault> {
        let (limit, mut token) = (self.options.request_timeout, String::new());
        loop {
            let query = match token.as_str() {
                "" => format!("limit={}", self.size),
                token => format!("limit={}&continue={token}", self.size),
            };
            let reply = transport::send_bounded(self.client, request(&query)?, limit).await?;
            let Some(reply) = reply else {
                self.shrink()?;
                continue;
            };
            let page: Page<T> = reply.object()?;
            page.items.into_iter().for_each(&mut each);
            token = page.metadata.continue_token;
            if token.is_empty() {
                return Ok(page.metadata.resource_version);
            }
        }
    }

    fn shrink(&mut self) -> Result<(), Fault> {
        if self.size == 1 {
            return Err(transport::too_large());
        }
        self.size = match self.size {
            0 => FIRST_SIZE,
            size => (size / SHRINK).max(1),
        };
        tracing::warn!(
            path = self.path,
            "some of these objects are very large: a page with more than {} of them exceeds {} MiB",
            self.size,
            LARGEST_ANSWER >> 20
        );
        Ok(())
    }
}
