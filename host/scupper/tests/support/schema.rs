//! Checks values against a JSON Schema of ours: strict ones, in the few keywords that they use.

use std::collections::BTreeSet;

use serde_json::Value;

/// The allowed keywords of a schema. Another keyword is an error in the schema, so that none stays unchecked.
const KEYWORDS: [&str; 14] = [
    "$schema",
    "$defs",
    "$ref",
    "title",
    "description",
    "type",
    "enum",
    "const",
    "minimum",
    "oneOf",
    "properties",
    "required",
    "additionalProperties",
    "items",
];

/// A schema, and its properties that have occurred in values so far.
pub(crate) struct Schema {
    root: Value,
    seen: BTreeSet<String>,
}

impl Schema {
    pub(crate) fn new(text: &str) -> Self {
        let root: Value = serde_json::from_str(text).unwrap();
        let schema = Self {
            root,
            seen: BTreeSet::new(),
        };
        schema.is_strict("");
        schema
    }

    #[track_caller]
    pub(crate) fn check(&mut self, value: &Value) {
        match self.faults("", value) {
            Ok(seen) => self.seen.extend(seen),
            Err(why) => panic!("{why}: {value:#}"),
        }
    }

    /// Every property of the schema has occurred in a value.
    #[track_caller]
    pub(crate) fn is_seen(&self) {
        let unseen: Vec<_> = self.properties("").into_iter().collect();
        let unseen: Vec<_> = unseen.iter().filter(|one| !self.seen.contains(*one)).collect();
        assert!(unseen.is_empty(), "no value has had these: {unseen:#?}");
    }

    fn at(&self, place: &str) -> &Value {
        self.root
            .pointer(place)
            .unwrap_or_else(|| panic!("there is no {place}"))
    }

    /// The places of the schemas directly inside this one.
    fn inside(&self, place: &str) -> Vec<String> {
        let schema = self.at(place).as_object().unwrap();
        let mut places = Vec::new();
        for keyword in ["properties", "$defs"] {
            let named = schema
                .get(keyword)
                .and_then(Value::as_object)
                .into_iter()
                .flatten();
            places.extend(named.map(|(name, _)| format!("{place}/{keyword}/{name}")));
        }
        let choices = schema.get("oneOf").and_then(Value::as_array).map_or(0, Vec::len);
        places.extend((0..choices).map(|number| format!("{place}/oneOf/{number}")));
        for keyword in ["items", "additionalProperties"] {
            let is_schema = schema.get(keyword).is_some_and(Value::is_object);
            places.extend(is_schema.then(|| format!("{place}/{keyword}")));
        }
        places
    }

    fn is_strict(&self, place: &str) {
        let schema = self.at(place).as_object().unwrap();
        for keyword in schema.keys() {
            assert!(KEYWORDS.contains(&keyword.as_str()), "{place}: {keyword}");
        }
        let is_object = schema.get("type").is_some_and(|kind| of_type(kind, "object"));
        assert!(
            !is_object || schema.contains_key("additionalProperties"),
            "{place}: other properties are neither forbidden nor described"
        );
        for place in self.inside(place) {
            self.is_strict(&place);
        }
    }

    fn properties(&self, place: &str) -> BTreeSet<String> {
        let inside = self.inside(place);
        let own = inside
            .iter()
            .filter(|one| one.starts_with(&format!("{place}/properties/")));
        let own: BTreeSet<String> = own.cloned().collect();
        let below = inside.iter().flat_map(|place| self.properties(place));
        below.chain(own).collect()
    }

    /// The places of the properties that the value has, or the value's error.
    fn faults(&self, place: &str, value: &Value) -> Result<BTreeSet<String>, String> {
        let schema = self.at(place);
        if let Some(other) = schema["$ref"].as_str() {
            return self.faults(other.trim_start_matches('#'), value);
        }
        let refuse = |why: &str| Err(format!("{place}: {why}: {value}"));
        if schema
            .get("type")
            .is_some_and(|kind| !of_type(kind, type_of(value)))
        {
            return refuse("another type");
        }
        if schema.get("const").is_some_and(|only| only != value) {
            return refuse("another value");
        }
        if let Some(values) = schema["enum"].as_array()
            && !values.contains(value)
        {
            return refuse("none of the values");
        }
        if let (Some(least), Some(number)) = (schema["minimum"].as_i64(), value.as_i64())
            && number < least
        {
            return refuse("too small");
        }
        let mut seen = self.choice(place, value)?;
        let items = value.as_array().filter(|_| schema.get("items").is_some());
        for item in items.into_iter().flatten() {
            seen.extend(self.faults(&format!("{place}/items"), item)?);
        }
        if let Some(fields) = value.as_object() {
            seen.extend(self.fields(place, fields)?);
        }
        Ok(seen)
    }

    fn choice(&self, place: &str, value: &Value) -> Result<BTreeSet<String>, String> {
        let Some(choices) = self.at(place)["oneOf"].as_array() else {
            return Ok(BTreeSet::new());
        };
        let tried = (0..choices.len()).map(|number| self.faults(&format!("{place}/oneOf/{number}"), value));
        let (fits, faults): (Vec<_>, Vec<_>) = tried.partition(Result::is_ok);
        match <[_; 1]>::try_from(fits) {
            Ok([fit]) => fit,
            Err(fits) => Err(format!("{place}: {} of oneOf fit: {faults:?}", fits.len())),
        }
    }

    fn fields(
        &self,
        place: &str,
        fields: &serde_json::Map<String, Value>,
    ) -> Result<BTreeSet<String>, String> {
        let schema = self.at(place);
        let mut seen = BTreeSet::new();
        for name in schema["required"].as_array().into_iter().flatten() {
            if !fields.contains_key(name.as_str().unwrap()) {
                return Err(format!("{place}: {name} is missing"));
            }
        }
        for (name, value) in fields {
            let property = format!("{place}/properties/{name}");
            if self.root.pointer(&property).is_some() {
                seen.extend(self.faults(&property, value)?);
                seen.insert(property);
                continue;
            }
            match &schema["additionalProperties"] {
                Value::Object(_) => {
                    seen.extend(self.faults(&format!("{place}/additionalProperties"), value)?)
                }
                Value::Bool(false) => return Err(format!("{place}: unknown property {name}")),
                _ => {}
            }
        }
        Ok(seen)
    }
}

fn of_type(kind: &Value, name: &str) -> bool {
    match kind {
        Value::Array(kinds) => kinds.iter().any(|kind| kind == name),
        kind => kind == name,
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
