//! The table of shapes as a JSON Schema, for editors, and to check a file before it reaches a node.

use serde_json::{Map, Value, json};

use super::shape::{Field, Keys, Shape};
use super::shapes::CONFIGURATION;

/// The schema of a configuration file: JSON Schema, draft 2020-12.
pub fn schema() -> Value {
    let mut schema = Map::new();
    schema.insert(
        "$schema".to_owned(),
        "https://json-schema.org/draft/2020-12/schema".into(),
    );
    schema.insert(
        "title".to_owned(),
        "The configuration of Scupper, scupper.yaml".into(),
    );
    if let Value::Object(rest) = shaped(&Shape::Object(&CONFIGURATION)) {
        schema.extend(rest);
    }
    Value::Object(schema)
}

fn object(object: &Keys) -> Value {
    let property = |field: &Field| {
        let mut property = shaped(&field.shape);
        if let Some(property) = property.as_object_mut() {
            property.insert("description".to_owned(), field.doc.into());
        }
        (field.name.to_owned(), property)
    };
    let properties: Map<String, Value> = object.fields.iter().copied().map(property).collect();
    let required: Vec<_> = object.fields.iter().filter(|field| field.required).collect();
    let mut schema = json!({ "type": "object", "additionalProperties": false, "properties": properties });
    if let Some(schema) = schema.as_object_mut() {
        if !required.is_empty() {
            let names: Vec<_> = required.iter().map(|field| field.name).collect();
            schema.insert("required".to_owned(), names.into());
        }
        if !object.one_of.is_empty() {
            let choices: Vec<_> = object
                .one_of
                .iter()
                .map(|name| json!({ "required": [name] }))
                .collect();
            schema.insert("oneOf".to_owned(), choices.into());
        }
    }
    schema
}

fn shaped(shape: &Shape) -> Value {
    match shape {
        Shape::Text(rule) => json!({ "type": "string", "pattern": rule.pattern }),
        Shape::Whole { least, most } => json!({ "type": "integer", "minimum": least, "maximum": most }),
        Shape::Bool => json!({ "type": "boolean" }),
        Shape::Quantity { least, most } => json!({
            "type": ["string", "integer"],
            "pattern": "^[0-9]+(Ki|Mi|Gi|k|M|G)?$",
            "minimum": least,
            "maximum": most,
        }),
        Shape::Duration { least_ms: 0, .. } => json!({
            "type": ["string", "integer"],
            "pattern": "^(0|([0-9]+(ms|s|m|h))+)$",
            "minimum": 0,
            "maximum": 0,
        }),
        Shape::Duration { .. } => json!({ "type": "string", "pattern": "^([0-9]+(ms|s|m|h))+$" }),
        Shape::OneOf(words) => json!({ "enum": words }),
        Shape::List { of, most } => json!({ "type": "array", "items": shaped(of), "maxItems": most }),
        Shape::Labels => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        Shape::Anything => json!({
            "type": "object",
            "additionalProperties": { "type": ["string", "number", "boolean", "array", "object"] },
        }),
        Shape::Object(_) | Shape::Drain => shape.keys().as_ref().map_or(Value::Null, object),
    }
}
