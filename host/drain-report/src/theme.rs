//! The colours of the page and of the picture, in light and in dark.

use super::causes::Kind;

/// Of what is not a kind of cause.
const OTHERS: [(&str, [&str; 2]); 4] = [
    ("forecast", ["#be185d", "#f472b6"]),
    ("line", ["#d0d7de", "#3d444d"]),
    ("page", ["#ffffff", "#0d1117"]),
    ("text", ["#1f2328", "#e6edf3"]),
];

const fn of_kind(kind: Kind) -> [&'static str; 2] {
    match kind {
        Kind::Hook => ["#7a4fbf", "#a78bfa"],
        Kind::Budget => ["#c2410c", "#fb923c"],
        Kind::Ending => ["#2563eb", "#60a5fa"],
        Kind::Wave => ["#7d8894", "#6b7280"],
        Kind::Limit => ["#b7791f", "#facc15"],
        Kind::Cluster => ["#0f766e", "#2dd4bf"],
        Kind::Host => ["#475569", "#94a3b8"],
    }
}

fn all() -> impl Iterator<Item = (&'static str, [&'static str; 2])> {
    let kinds = Kind::ALL.into_iter().map(|kind| (kind.name(), of_kind(kind)));
    kinds.chain(OTHERS)
}

/// Variables of CSS.
pub(super) fn variables() -> String {
    let list = |place: usize| -> String {
        let colours = all().filter_map(|(name, colours)| Some((name, *colours.get(place)?)));
        colours
            .map(|(name, colour)| format!(" --{name}: {colour};"))
            .collect()
    };
    both(
        &format!(":root {{{} }}", list(0)),
        &format!(":root {{{} }}", list(1)),
    )
}

/// A class with a fill for each, because not every program that shows SVG knows variables.
pub(super) fn fills() -> String {
    let list = |place: usize| -> String {
        let colours = all().filter_map(|(name, colours)| Some((name, *colours.get(place)?)));
        colours
            .map(|(name, colour)| format!(".{name} {{ fill: {colour}; }} "))
            .collect()
    };
    both(list(0).trim_end(), list(1).trim_end())
}

fn both(light: &str, dark: &str) -> String {
    format!("{light}\n@media (prefers-color-scheme: dark) {{ {dark} }}\n")
}
