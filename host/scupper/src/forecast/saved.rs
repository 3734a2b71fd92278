//! A cluster in a file, for `--from`.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use scupper_saved_cluster::{SavedCluster, SavedError};
use serde_json::Value;

/// The reason why a file has no cluster.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FromError {
    /// It cannot be read.
    #[error("--from: cannot read {0}")]
    Read(PathBuf, #[source] io::Error),
    /// It is neither JSON nor YAML.
    #[error("--from: {0} is neither JSON nor YAML: {1}")]
    Form(PathBuf, String),
    /// It is something else.
    #[error("--from: {0} is not a cluster")]
    Objects(PathBuf, #[source] SavedError),
}

/// Reads the file; `-`: standard input.
pub(super) fn read(path: &Path) -> Result<SavedCluster, FromError> {
    let text = match path.to_str() {
        Some("-") => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).map(|_| text)
        }
        _ => std::fs::read_to_string(path),
    };
    let text = text.map_err(|error| FromError::Read(path.to_owned(), error))?;
    let documents = documents(&text).map_err(|error| FromError::Form(path.to_owned(), error))?;
    SavedCluster::of(documents).map_err(|error| FromError::Objects(path.to_owned(), error))
}

/// JSON is YAML as well, but large: YAML's reader has limits.
fn documents(text: &str) -> Result<Vec<Value>, String> {
    if text.trim_start().starts_with('{') {
        let documents = serde_json::Deserializer::from_str(text).into_iter();
        return documents
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string());
    }
    serde_saphyr::from_multiple(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_forms_and_several_documents_are_read() {
        let (a, b) = (json!({"kind": "A"}), json!({"kind": "B"}));
        for text in [
            "{\"kind\": \"A\"}\n{\"kind\": \"B\"}",
            "kind: A\n---\nkind: B\n",
            "---\nkind: A\n---\n{kind: B}\n",
        ] {
            assert_eq!(documents(text).unwrap(), [a.clone(), b.clone()], "{text}");
        }
        assert!(documents("{\"kind\": ").is_err());
        assert!(documents("kind: [").is_err());
    }
}
