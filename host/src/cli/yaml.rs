//! JSON values as YAML, for `--output yaml`.

use serde_json::Value;

/// One document, with its separator in front.
pub(super) fn document(value: &Value) -> String {
    let mut text = "---".to_owned();
    match value {
        Value::Object(_) | Value::Array(_) if !is_empty(value) => block(&mut text, value, 0),
        _ => {
            text.push(' ');
            text.push_str(&inline(value));
        }
    }
    text
}

fn block(text: &mut String, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    let mut entry = |head: String, value: &Value| {
        text.push('\n');
        text.push_str(&indent);
        text.push_str(&head);
        if is_empty(value) || !(value.is_object() || value.is_array()) {
            text.push(' ');
            text.push_str(&inline(value));
        } else {
            block(text, value, depth + 1);
        }
    };
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                entry(format!("{}:", scalar(key)), value);
            }
        }
        Value::Array(items) => {
            for item in items {
                entry("-".to_owned(), item);
            }
        }
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// What fits on the line of its key. JSON's own form is YAML's as well.
fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        other => other.to_string(),
    }
}

/// Plain where no reader of YAML can take it for anything but this text, else quoted.
fn scalar(text: &str) -> String {
    const WORDS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    let is_plain = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text
            .chars()
            .all(|it| it.is_ascii_alphanumeric() || "-_./ ".contains(it))
        && !text.ends_with(' ')
        && !WORDS.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is_plain {
        text.to_owned()
    } else {
        Value::from(text).to_string()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_reads_as_what_it_was() {
        let value = json!({
            "node": "worker-1", "cordoned": true, "count": 3, "ratio": 0.5, "nothing": null, "empty": {}, "none": [],
            "pods": [{"name": "web", "labels": {"a": "yes", "b": "1e3", "c": "0x1f", "d": "12:30"}}, [1, [2]], []],
            "text": "a: b # c\n\"d\" \\ é \u{1}", "": "", "trailing": "a ", "on": "-", "~": "~", "12": ".inf",
        });
        let text = document(&value);
        let read: Value = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(read, value, "{text}");
        assert!(text.contains("\nnode: worker-1\n"), "{text}");
        assert!(
            text.contains("\npods:\n  -\n    labels:\n      a: \"yes\"\n"),
            "{text}"
        );
        assert_eq!(document(&json!([])), "--- []");
    }
}
