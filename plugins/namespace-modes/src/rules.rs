//! The rules of the configuration.

use std::time::Duration;

use scupper_sdk::{Drain, Hold, LabelPattern, Pod, Problem, Verdict, config, facts};

/// NVSentinel's, and those that every cluster has.
const SYSTEM_NAMESPACES: &str = "kube-system, kube-public, kube-node-lease, nvsentinel, gpu-operator, \
                                 network-operator, gmp-system, skyhook";
/// node-drainer's default.
const TIMEOUT: Duration = Duration::from_secs(3600);
const EXAMPLE: &str = "team-* DeleteAfterTimeout 1h grace 30s";

/// How the pods of some namespaces leave.
pub(crate) struct Rule {
    selector: Selector,
    /// Its name, for people.
    mode: String,
    pub(crate) verdict: Verdict,
    /// How long the pods may stay, if that is limited.
    pub(crate) hold: Option<Hold>,
}

/// Which namespaces: those with such a name, or with such a label.
enum Selector {
    Name(String),
    Label(LabelPattern),
}

/// The system namespaces, and then the configured rules.
pub(crate) fn rules() -> Result<Vec<Rule>, Problem> {
    let mut rules = config::parsed_list("system-namespaces", SYSTEM_NAMESPACES, |pattern| {
        Ok::<_, &str>(Rule {
            selector: name(pattern)?,
            mode: "a system namespace, whose pods stay".to_owned(),
            verdict: Verdict::Keep,
            hold: None,
        })
    })?;
    let texts = config::list("rules", "");
    if let Some([text, _]) = texts.array_windows().find(|[text, _]| text.starts_with("* ")) {
        let what = "must be the last rule: none after it applies";
        return Err(Problem::new(
            "rules",
            format!("`{text}`: {what}; an example is {EXAMPLE}"),
        ));
    }
    let rule = |text: &str| rule(text).map_err(|what| format!("{what}; an example is {EXAMPLE}"));
    rules.extend(config::parsed_list("rules", "", rule)?);
    Ok(rules)
}

/// `SELECTOR MODE [TIME [grace TIME]]`
fn rule(text: &str) -> Result<Rule, &'static str> {
    let (selector, rest) = first_word(text);
    let (mode, time) = first_word(rest);
    let hold = (!time.is_empty()).then(|| time.parse::<Hold>()).transpose()?;
    let (verdict, hold) = match (mode, hold) {
        ("Immediate", None) => (Verdict::Evict, None),
        ("Keep", None) => (Verdict::Keep, None),
        ("AllowCompletion", None) => (Verdict::AwaitCompletion, None),
        ("AllowCompletion", hold) => (Verdict::Evict, hold),
        ("DeleteAfterTimeout", None) => (Verdict::Delete, Some(Hold::at_most(TIMEOUT))),
        ("DeleteAfterTimeout", hold) => (Verdict::Delete, hold),
        ("Immediate" | "Keep", Some(_)) => {
            return Err("only AllowCompletion and DeleteAfterTimeout have times");
        }
        ("", _) => return Err("must have a mode after the selector"),
        _ => return Err("the modes are Immediate, AllowCompletion, DeleteAfterTimeout and Keep"),
    };
    let selector = match selector.contains('=') {
        true => Selector::Label(selector.parse()?),
        false => name(selector)?,
    };
    Ok(Rule {
        selector,
        mode: mode.to_owned(),
        verdict,
        hold,
    })
}

fn first_word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim())
}

fn name(text: &str) -> Result<Selector, &'static str> {
    let is_known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-*?".contains(c);
    let is_name = text.chars().all(is_known);
    let name = is_name.then(|| Selector::Name(text.to_owned()));
    name.ok_or("a namespace has only a-z, 0-9 and -; a pattern also * and ?")
}

impl Rule {
    pub(crate) const fn reads_labels(&self) -> bool {
        matches!(self.selector, Selector::Label(_))
    }

    pub(crate) fn matches(&self, pod: &Pod) -> Result<bool, facts::Error> {
        match &self.selector {
            Selector::Name(pattern) => Ok(config::matches(pattern, &pod.namespace)),
            Selector::Label(label) => match facts::namespace(&pod.namespace) {
                Ok(namespace) => Ok(label.matches(namespace.label(label.key()))),
                // It was deleted meanwhile, and its pods with it.
                Err(facts::Error::NotFound(_)) => Ok(false),
                Err(error) => Err(error),
            },
        }
    }

    /// What becomes of a pod, for people.
    pub(crate) fn reason(&self, pod: &Pod, drain: &Drain) -> String {
        let what = format!("namespace {}: {}", pod.namespace, self.mode);
        match self.hold {
            None => what,
            Some(hold) if self.verdict == Verdict::Delete => {
                format!("{what}, deleted {}", hold.when(pod, drain))
            }
            Some(hold) => format!("{what}, evicted {}", hold.when(pod, drain)),
        }
    }
}
