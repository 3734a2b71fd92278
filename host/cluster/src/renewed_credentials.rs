//! Makes the client's lower layers anew when the API server no longer accepts their credentials (401).
//!
//! A client certificate, and the answer of a credential plugin that names no expiry, are read only when those layers are
//! made. Certificates of an hour are common, and a drain may take days.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use tokio::time::Instant;
use tower::util::BoxCloneService;
use tower::{BoxError, ServiceExt as _};

/// Not more often than this: making them may run a plugin.
const AT_MOST_EVERY: Duration = Duration::from_secs(10);
/// A plugin that has not answered for so long is run again.
const HANGS: Duration = Duration::from_secs(300);

/// What answers requests with one set of credentials.
pub(super) type Layers<B, A> = BoxCloneService<Request<B>, Response<A>, BoxError>;

/// The layers, and how to make them.
pub(super) struct RenewedCredentials<B, A> {
    make: Box<dyn Fn() -> Result<Layers<B, A>, BoxError> + Send + Sync>,
    current: Mutex<Current<B, A>>,
}

struct Current<B, A> {
    layers: Layers<B, A>,
    /// From when on others may be made.
    due: Instant,
}

impl<B: Send + 'static, A: Send + 'static> RenewedCredentials<B, A> {
    pub(super) fn new(
        make: impl Fn() -> Result<Layers<B, A>, BoxError> + Send + Sync + 'static,
    ) -> Result<Arc<Self>, BoxError> {
        let (layers, due) = (make()?, Instant::now() + AT_MOST_EVERY);
        Ok(Arc::new(Self {
            make: Box::new(make),
            current: Mutex::new(Current { layers, due }),
        }))
    }

    /// Sends one request. It is not repeated: the caller decides that. New credentials are made beside it, because a plugin
    /// may wait for a person, longer than the request may take.
    pub(super) async fn send(self: Arc<Self>, request: Request<B>) -> Result<Response<A>, BoxError> {
        let layers = self.current(|current| current.layers.clone());
        let answer = layers.oneshot(request).await?;
        if answer.status() == StatusCode::UNAUTHORIZED && self.is_due() {
            tokio::spawn(self.renew());
        }
        Ok(answer)
    }

    fn current<T>(&self, look: impl FnOnce(&mut Current<B, A>) -> T) -> T {
        look(&mut self.current.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// True for one of the requests that are refused at the same time.
    fn is_due(&self) -> bool {
        let now = Instant::now();
        let take = |current: &mut Current<B, A>| (now >= current.due).then(|| current.due = now + HANGS);
        self.current(take).is_some()
    }

    async fn renew(self: Arc<Self>) {
        let making = Arc::clone(&self);
        // A plugin is a program.
        let made = tokio::task::spawn_blocking(move || (making.make)()).await;
        match made.map_err(BoxError::from).flatten() {
            Ok(layers) => self.current(|current| current.layers = layers),
            Err(error) => tracing::warn!(error, "the credentials could not be read again"),
        }
        self.current(|current| current.due = Instant::now() + AT_MOST_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicU16, Ordering};

    use tower::service_fn;

    use super::*;

    /// Credentials number `n` are accepted while `valid` is `n`.
    fn credentials(
        valid: &Arc<AtomicU16>,
        plugin: impl Fn() + Send + Sync + 'static,
    ) -> (Arc<RenewedCredentials<(), u16>>, Arc<AtomicU16>) {
        let made = Arc::new(AtomicU16::new(0));
        let (valid, count) = (Arc::clone(valid), Arc::clone(&made));
        let make = move || {
            plugin();
            let (own, valid) = (count.fetch_add(1, Ordering::SeqCst), Arc::clone(&valid));
            let layers = service_fn(move |_: Request<()>| {
                let is_valid = valid.load(Ordering::SeqCst) == own;
                let answer = Response::builder().status(if is_valid { 200 } else { 401 });
                std::future::ready(Ok::<_, Infallible>(answer.body(own).unwrap()))
            });
            Ok(layers.map_err(BoxError::from).boxed_clone())
        };
        (RenewedCredentials::new(make).unwrap(), made)
    }

    async fn status(of: &Arc<RenewedCredentials<(), u16>>) -> u16 {
        let answer = Arc::clone(of).send(Request::new(())).await;
        answer.unwrap().status().as_u16()
    }

    /// Until the new ones are there.
    async fn renewed(credentials: &Arc<RenewedCredentials<(), u16>>) {
        while status(credentials).await != 200 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn they_are_read_again_when_the_server_refuses_them() {
        let valid = Arc::new(AtomicU16::new(0));
        let (credentials, made) = credentials(&valid, || {});
        assert_eq!(status(&credentials).await, 200);
        tokio::time::advance(Duration::from_secs(3600)).await;
        valid.store(1, Ordering::SeqCst);
        assert_eq!(status(&credentials).await, 401);
        renewed(&credentials).await;
        assert_eq!(made.load(Ordering::SeqCst), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_plugin_that_takes_its_time_is_run_once_and_holds_no_request_up() {
        let valid = Arc::new(AtomicU16::new(0));
        let (release, plugin) = std::sync::mpsc::channel::<()>();
        let (plugin, is_first) = (Mutex::new(plugin), std::sync::Once::new());
        let (credentials, made) = credentials(&valid, move || {
            let is_waiting = is_first.is_completed();
            is_first.call_once(|| {});
            if is_waiting {
                plugin.lock().unwrap().recv().unwrap();
            }
        });
        valid.store(1, Ordering::SeqCst);
        for _ in 0..4 {
            tokio::time::advance(Duration::from_secs(60)).await;
            assert_eq!(status(&credentials).await, 401);
        }
        release.send(()).unwrap();
        renewed(&credentials).await;
        assert_eq!(made.load(Ordering::SeqCst), 2);
    }
}
