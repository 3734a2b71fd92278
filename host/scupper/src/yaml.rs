//! JSON values as YAML, for `--output yaml`.

use serde_json::Value;

/// One document, with its separator in front.
pub(super) fn document(value: &Value) -> String {
    // JSON is YAML as well.
    let text = serde_saphyr::to_string(value).unwrap_or_else(|_| value.to_string());
    format!("---\n{}", text.trim_end())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn yaml_output_survives_a_round_trip() {
        let value = json!({
            "node": "worker-1", "cordoned": true, "count": 3, "ratio": 0.5, "nothing": null, "empty": {}, "none": [],
            "pods": [{"name": "web", "labels": {"a": "yes", "b": "1e3", "c": "0x1f", "d": "12:30"}}, [1, [2]], []],
            "text": "a: b # c\n\"d\" \\ é \u{1}", "": "", "trailing": "a ", "on": "-", "~": "~", "12": ".inf",
        });
        let text = document(&value);
        let read: Value = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(read, value, "{text}");
        assert!(text.contains("\nnode: worker-1\n"), "{text}");
        // Older readers take a plain `yes` for true.
        assert!(text.contains("a: \"yes\"\n"), "{text}");
        assert_eq!(document(&json!([])), "---\n[]");
    }
}
