//! Lists: selection, pages, versions.

use std::sync::Arc;

use serde_json::{Value, json};

use super::failure::Failure;
use super::fields;
use super::selector::Selection;
use super::shape::Shape;
use super::table::{Key, Table};
use super::target::{Query, Target};

/// Where a paged list continues.
struct Page {
    version: u64,
    after: Option<(String, String)>,
}

/// The requested version is in the future: the server waits for a moment and then refuses.
pub(crate) fn lies_ahead(table: &Table, query: &Query) -> bool {
    query
        .number("resourceVersion")
        .is_some_and(|it| it > table.version)
}

/// The response in that case.
pub(crate) fn too_large(table: &Table, query: &Query) -> Failure {
    let wanted = query.text("resourceVersion");
    let message = format!(
        "Timeout: Too large resource version: {wanted}, current: {}",
        table.version
    );
    Failure::new(504, "Timeout", message)
        .causes(json!([{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]))
        .retry_after(1)
}

/// A `List` of the selected objects.
pub(crate) fn list(table: &Table, target: &Target, query: &Query, shape: Shape) -> Result<Value, Failure> {
    let kind = &target.kind;
    let selection = Selection::parse(kind, query.text("labelSelector"), query.text("fieldSelector"))?;
    let page = page(table, query)?;
    let cached = query.text("resourceVersion") == "0";
    let limit = query
        .number("limit")
        .filter(|it| *it > 0 && !cached)
        .map(|it| usize::try_from(it).unwrap_or(usize::MAX));
    let resource = kind.resource();
    let namespace = target.namespace.as_deref();
    let then = table.list_at(&resource, namespace, page.version);
    let found: Box<dyn Iterator<Item = (&Key, &Arc<Value>)>> = match &then {
        Some(then) => Box::new(then.iter()),
        None => Box::new(table.list(&resource, namespace)),
    };
    let is_later = |key: &Key| {
        let after = page.after.as_ref();
        after.is_none_or(|(ns, name)| (&key.namespace, &key.name) > (ns, name))
    };
    let mut rest = found.filter(|(key, object)| is_later(key) && selection.matches(object));
    let mut items = Vec::new();
    let mut last = None;
    for (key, object) in rest.by_ref().take(limit.unwrap_or(usize::MAX)) {
        items.push(shape.item(kind, object));
        last = Some(key);
    }
    let mut metadata = json!({"resourceVersion": page.version.to_string()});
    let has_more = rest.next().is_some();
    if let Some(last) = last.filter(|_| has_more) {
        let token = format!("{}/{}/{}", page.version, last.namespace, last.name);
        fields::set(&mut metadata, "/continue", token.into());
        if selection.is_everything() {
            fields::set(&mut metadata, "/remainingItemCount", (1 + rest.count()).into());
        }
    }
    let (kind, version) = shape.list(kind);
    Ok(json!({"kind": kind, "apiVersion": version, "metadata": metadata, "items": items}))
}

fn page(table: &Table, query: &Query) -> Result<Page, Failure> {
    let token = query.text("continue");
    if token.is_empty() {
        let exact = query.text("resourceVersionMatch") == "Exact";
        let version = query
            .number("resourceVersion")
            .filter(|_| exact)
            .unwrap_or(table.version);
        return check_age(table, version).map(|()| Page { version, after: None });
    }
    let mut parts = token.splitn(3, '/');
    let version = parts.next().and_then(|it| it.parse().ok());
    let (Some(version), Some(namespace), Some(name)) = (version, parts.next(), parts.next()) else {
        return Err(Failure::bad_request(
            "continue key is not valid: illegal base64 data at input byte 0",
        ));
    };
    check_age(table, version)?;
    Ok(Page {
        version,
        after: Some((namespace.to_owned(), name.to_owned())),
    })
}

fn check_age(table: &Table, version: u64) -> Result<(), Failure> {
    if version >= table.oldest {
        return Ok(());
    }
    Err(Failure::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list \
         without the continue parameter, or use the continue token in this response to retrieve the remainder of the \
         results. Continuing with the provided token results in an inconsistent list - objects that were created, \
         modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    ))
}
