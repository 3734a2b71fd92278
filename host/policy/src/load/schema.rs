//! Checks that a JSON value is a JSON schema, by the keywords that the drafts have in common. It must not know the
//! schema's owner.

use serde_json::Value;

/// Bytes of a wrong value that an error shows.
const SHOWN: usize = 40;

const TYPES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];

/// The type of a keyword's value.
#[derive(Clone, Copy)]
enum Form {
    Schema,
    /// In older drafts `items` may be a list.
    SchemaOrList,
    List,
    Map,
    Type,
    Texts,
    Values,
    Text,
    Number,
    Count,
    Bool,
}

const KEYWORDS: &[(Form, &[&str])] = &[
    (
        Form::Schema,
        &[
            "additionalProperties",
            "additionalItems",
            "contains",
            "not",
            "if",
            "then",
            "else",
            "propertyNames",
            "unevaluatedItems",
            "unevaluatedProperties",
        ],
    ),
    (Form::SchemaOrList, &["items"]),
    (Form::List, &["allOf", "anyOf", "oneOf", "prefixItems"]),
    (
        Form::Map,
        &[
            "properties",
            "patternProperties",
            "$defs",
            "definitions",
            "dependentSchemas",
        ],
    ),
    (Form::Type, &["type"]),
    (Form::Texts, &["required"]),
    (Form::Values, &["enum", "examples"]),
    (
        Form::Text,
        &[
            "$schema",
            "$id",
            "$ref",
            "$comment",
            "title",
            "description",
            "pattern",
            "format",
        ],
    ),
    (Form::Number, &["minimum", "maximum", "multipleOf"]),
    (
        Form::Count,
        &[
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "minProperties",
            "maxProperties",
        ],
    ),
    (
        Form::Bool,
        &["uniqueItems", "deprecated", "readOnly", "writeOnly"],
    ),
];

/// The first error, with its place as a JSON pointer.
pub(crate) fn flaw(value: &Value) -> Option<String> {
    of_schema(value, "")
}

fn of_schema(value: &Value, at: &str) -> Option<String> {
    let fields = match value {
        Value::Bool(_) => return None,
        Value::Object(fields) => fields,
        other => return Some(wrong(at, "an object, true or false", other)),
    };
    fields.iter().find_map(|(key, value)| {
        let (form, _) = KEYWORDS.iter().find(|(_, keys)| keys.contains(&key.as_str()))?;
        of_keyword(*form, value, &format!("{at}/{key}"))
    })
}

fn of_keyword(form: Form, value: &Value, at: &str) -> Option<String> {
    let must = |is: bool, what: &str| (!is).then(|| wrong(at, what, value));
    let list = |items: &[Value]| {
        let mut items = items.iter().enumerate();
        items.find_map(|(index, item)| of_schema(item, &format!("{at}/{index}")))
    };
    match (form, value) {
        (Form::SchemaOrList | Form::List, Value::Array(items)) => list(items),
        (Form::Schema | Form::SchemaOrList, _) => of_schema(value, at),
        (Form::List, _) => must(false, "a list of schemas"),
        (Form::Map, Value::Object(fields)) => {
            let mut fields = fields.iter();
            fields.find_map(|(key, value)| of_schema(value, &format!("{at}/{key}")))
        }
        (Form::Map, _) => must(false, "an object of schemas"),
        (Form::Type, Value::Array(types)) => must(
            types.iter().all(is_type),
            "names of types, such as string or integer",
        ),
        (Form::Type, _) => must(is_type(value), "the name of a type, such as string or integer"),
        (Form::Texts, Value::Array(texts)) => must(texts.iter().all(Value::is_string), "a list of keys"),
        (Form::Texts, _) => must(false, "a list of keys"),
        (Form::Values, _) => must(value.is_array(), "a list"),
        (Form::Text, _) => must(value.is_string(), "a text"),
        (Form::Number, _) => must(value.is_number(), "a number"),
        (Form::Count, _) => must(value.is_u64(), "a whole number that is not negative"),
        (Form::Bool, _) => must(value.is_boolean(), "true or false"),
    }
}

fn is_type(value: &Value) -> bool {
    value.as_str().is_some_and(|name| TYPES.contains(&name))
}

fn wrong(at: &str, what: &str, value: &Value) -> String {
    let at = if at.is_empty() { "it" } else { at };
    let shown = scupper_common::text::one_line(&value.to_string(), SHOWN);
    let at = scupper_common::text::one_line(at, 2 * SHOWN);
    format!("{at} must be {what}, not {shown}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas() {
        for schema in [
            json!({}),
            json!(true),
            json!({"type": ["string", "null"], "enum": ["a"], "x-ours": 5}),
            json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "required": ["a"],
                "properties": {"a": {"type": "integer", "minimum": 1}, "type": {"type": "string"}},
                "additionalProperties": false,
            }),
            json!({"items": [{"type": "string"}], "anyOf": [true, {"maxLength": 3}]}),
        ] {
            assert_eq!(flaw(&schema), None, "{schema}");
        }
    }

    #[test]
    fn an_invalid_schema_is_reported_with_its_path() {
        for (value, reported) in [
            (json!("text"), "it must be an object, true or false, not \"text\""),
            (json!([]), "it must be an object"),
            (json!(null), "it must be an object"),
            (
                json!({"type": "text"}),
                "/type must be the name of a type, such as string or integer, not \"text\"",
            ),
            (json!({"type": ["string", 1]}), "/type must be names of types"),
            (
                json!({"properties": []}),
                "/properties must be an object of schemas",
            ),
            (
                json!({"properties": {"a": "string"}}),
                "/properties/a must be an object, true or false",
            ),
            (json!({"anyOf": [{}, 1]}), "/anyOf/1 must be an object"),
            (json!({"required": "a"}), "/required must be a list of keys"),
            (
                json!({"items": {"maxLength": -1}}),
                "/items/maxLength must be a whole number",
            ),
        ] {
            let flaw = flaw(&value).unwrap_or_default();
            assert!(flaw.starts_with(reported), "{value}: {flaw}");
        }
    }
}
