//! The long-lived tasks of a process, each with a name. None may end before the process does: the first that ends is
//! reported, so that the process can end with that error and be started again. Otherwise it would go on without this
//! task, and nothing would show it.

use std::any::Any;
use std::time::Duration;

use thiserror::Error;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::timeout;

/// How long an aborted task may take: one that never waits for anything cannot be aborted.
const ABORTED_WITHIN: Duration = Duration::from_secs(1);
/// How long to wait for the error of another task after one has only returned.
const CAUSE_WITHIN: Duration = Duration::from_millis(200);

/// A task ended that must run as long as its process.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TaskEnded {
    /// It returned, or was aborted.
    #[error("the task \"{name}\" ended while the driver runs")]
    Returned {
        /// The task.
        name: &'static str,
    },
    /// It panicked.
    #[error("the task \"{name}\" panicked: {message}")]
    Panicked {
        /// The task.
        name: &'static str,
        /// The panic's text.
        message: String,
    },
}

/// The tasks of a process, in the order of their start. Dropping this aborts all of them.
#[derive(Debug)]
pub struct Tasks<E> {
    running: JoinSet<Result<(), E>>,
    started: Vec<Started>,
}

#[derive(Debug)]
struct Started {
    name: &'static str,
    /// How long it may take to end by itself when the process ends.
    farewell: Duration,
    task: AbortHandle,
}

impl<E> Default for Tasks<E> {
    fn default() -> Self {
        Self {
            running: JoinSet::new(),
            started: Vec::new(),
        }
    }
}

impl<E: From<TaskEnded> + Send + 'static> Tasks<E> {
    /// Starts a task that is aborted when the process ends.
    pub fn spawn(&mut self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.spawn_closing(name, Duration::ZERO, task);
    }

    /// Starts a task that ends by itself when the process ends, within this time.
    pub fn spawn_closing(
        &mut self,
        name: &'static str,
        farewell: Duration,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        self.spawn_fallible(name, farewell, async {
            task.await;
            Ok(())
        });
    }

    /// The same for one that may fail.
    pub fn spawn_fallible(
        &mut self,
        name: &'static str,
        farewell: Duration,
        task: impl Future<Output = Result<(), E>> + Send + 'static,
    ) {
        let task = self.running.spawn(task);
        self.started.push(Started { name, farewell, task });
    }

    /// The running tasks, in the order of their start, each with the means to end it.
    pub fn running(&self) -> Vec<(&'static str, AbortHandle)> {
        let running = self.started.iter();
        running.map(|it| (it.name, it.task.clone())).collect()
    }

    /// Waits for the first task that ends, and returns why. When the process stops, `last` ends in order; others may end
    /// before it.
    ///
    /// # Errors
    /// A task failed, panicked, or returned although the process does not stop.
    pub async fn supervise(&mut self, last: &str, is_stopping: impl Fn() -> bool) -> Result<(), E> {
        loop {
            match self.next_ended().await {
                (name, Ok(())) if is_stopping() && name == last => return Ok(()),
                (_, Ok(())) if is_stopping() => {}
                ended => return Err(self.cause(ended).await),
            }
        }
    }

    /// Waits for the next task that ends, and returns its name and its result; for ever if there is none.
    async fn next_ended(&mut self) -> (&'static str, Result<(), E>) {
        loop {
            let Some(ended) = self.running.join_next_with_id().await else {
                return std::future::pending().await;
            };
            let id = ended.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
            let Some(place) = self.place_of(id) else { continue };
            let Started { name, .. } = self.started.remove(place);
            return match ended {
                Ok((_, result)) => (name, result),
                Err(error) => (name, Err(TaskEnded::of(name, error).into())),
            };
        }
    }

    /// What ended a task: its own error, or that of another one. A task that ends closes what others read from, and these
    /// may be seen to return before it.
    async fn cause(&mut self, (name, result): (&'static str, Result<(), E>)) -> E {
        if let Err(error) = result {
            return error;
        }
        let error = async {
            loop {
                if let (_, Err(error)) = self.next_ended().await {
                    return error;
                }
            }
        };
        let error = timeout(CAUSE_WITHIN, error).await;
        error.unwrap_or_else(|_| TaskEnded::Returned { name }.into())
    }

    /// Ends all tasks, the last first.
    pub async fn shut_down(mut self) {
        while let Some(Started { name, farewell, task }) = self.started.last() {
            let (name, farewell, task) = (*name, *farewell, task.clone());
            if !farewell.is_zero() && timeout(farewell, self.ended(task.id())).await.is_err() {
                tracing::warn!(task = name, "did not end in time");
            }
            task.abort();
            if timeout(ABORTED_WITHIN, self.ended(task.id())).await.is_err() {
                tracing::warn!(task = name, "cannot be aborted");
                self.started.pop();
            }
        }
    }

    /// Waits until this task has ended.
    async fn ended(&mut self, id: Id) {
        while self.place_of(id).is_some() {
            // The process ends already, with an error of its own or none.
            let (name, _) = self.next_ended().await;
            tracing::debug!(task = name, "ended");
        }
    }

    fn place_of(&self, id: Id) -> Option<usize> {
        self.started.iter().position(|it| it.task.id() == id)
    }
}

impl TaskEnded {
    /// Why a task of this name ended.
    pub fn of(name: &'static str, error: JoinError) -> Self {
        match error.try_into_panic() {
            Ok(panic) => Self::Panicked {
                name,
                message: text(panic.as_ref()).to_owned(),
            },
            Err(_) => Self::Returned { name },
        }
    }
}

fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("for an unknown reason")
}

#[cfg(test)]
mod tests;
