//! Formats the API server's answers to evictions, for people and for machines.

use scupper_engine::{EvictAnswer, PodRef, Reason};
use serde_json::{Value, json};

use scupper_common::text::spaced_line;

/// The answer as one sentence. What a budget says, a drain says in the same words.
pub(super) fn answer_text(answer: &EvictAnswer) -> String {
    spaced_line(&match answer {
        EvictAnswer::Accepted => "allowed".to_owned(),
        EvictAnswer::NotFound => "it is gone already".to_owned(),
        EvictAnswer::BudgetExhausted { budget, message } => Reason::BudgetExhausted {
            budget: budget.clone(),
            message: message.clone(),
        }
        .to_string(),
        EvictAnswer::BudgetNotObserved { message, .. } => Reason::BudgetNotObserved {
            message: message.clone(),
        }
        .to_string(),
        EvictAnswer::MoreThanOneBudget { message } => Reason::MoreThanOneBudget {
            message: message.clone(),
        }
        .to_string(),
        EvictAnswer::UidMismatch { message }
        | EvictAnswer::Throttled { message, .. }
        | EvictAnswer::NamespaceTerminating { message }
        | EvictAnswer::Forbidden { message }
        | EvictAnswer::Unreachable { message } => message.clone(),
        EvictAnswer::Refused { code, message, .. } => format!("{code}: {message}"),
    })
}

/// The answer as one word, in the style of reasons.
const fn name(answer: &EvictAnswer) -> &'static str {
    match answer {
        EvictAnswer::Accepted => "Accepted",
        EvictAnswer::NotFound => "NotFound",
        EvictAnswer::UidMismatch { .. } => "UidDisproved",
        EvictAnswer::BudgetExhausted { .. } => "BudgetExhausted",
        EvictAnswer::BudgetNotObserved { .. } => "BudgetNotObserved",
        EvictAnswer::MoreThanOneBudget { .. } => "MoreThanOneBudget",
        EvictAnswer::Throttled { .. } => "Throttled",
        EvictAnswer::NamespaceTerminating { .. } => "NamespaceTerminating",
        EvictAnswer::Forbidden { .. } => "Forbidden",
        EvictAnswer::Refused { .. } => "EvictionRefused",
        EvictAnswer::Unreachable { .. } => "Unreachable",
    }
}

/// One object per pod.
pub(super) fn answers_to_json(answers: &[(PodRef, EvictAnswer)]) -> Value {
    let answers = answers.iter().map(|(pod, answer)| {
        json!({ "pod": pod.to_string(), "answer": name(answer), "message": answer_text(answer) })
    });
    Value::Array(answers.collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use scupper_report::fixture::running;

    use super::*;

    /// A variant that is not listed does not compile; one that is must be among the samples.
    macro_rules! complete {
        ($samples:ident: $($variant:ident)+) => {
            let _listed = |answer: &EvictAnswer| match answer {
                $(EvictAnswer::$variant { .. } => {})+
            };
            $(assert!(
                $samples.iter().any(|it| matches!(it, EvictAnswer::$variant { .. })),
                "no sample is {}", stringify!($variant)
            );)+
        };
    }

    #[test]
    fn every_answer() {
        let message = || "in the server's words".to_owned();
        let retry_after = Duration::from_secs(10);
        let answers = [
            EvictAnswer::Accepted,
            EvictAnswer::NotFound,
            EvictAnswer::UidMismatch { message: message() },
            EvictAnswer::BudgetExhausted {
                budget: "cart".to_owned(),
                message: message(),
            },
            EvictAnswer::BudgetNotObserved {
                message: message(),
                retry_after,
            },
            EvictAnswer::MoreThanOneBudget { message: message() },
            EvictAnswer::Throttled {
                message: message(),
                retry_after: None,
            },
            EvictAnswer::NamespaceTerminating { message: message() },
            EvictAnswer::Forbidden { message: message() },
            EvictAnswer::Refused {
                code: 403,
                message: message(),
                retry_after: None,
            },
            EvictAnswer::Unreachable { message: message() },
        ];
        complete!(answers: Accepted NotFound UidMismatch BudgetExhausted BudgetNotObserved MoreThanOneBudget Throttled
            NamespaceTerminating Forbidden Refused Unreachable);
        let names: BTreeSet<_> = answers.iter().map(name).collect();
        assert_eq!(names.len(), answers.len());
        let words = answers.iter().map(answer_text).collect::<Vec<_>>().join("\n");
        let pod = running("web-1").id;
        let answers = answers.map(|answer| (pod.clone(), answer));
        let json = serde_json::to_string_pretty(&answers_to_json(&answers)).unwrap();
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!("eviction-answers", format!("{words}\n{json}"));
        });
    }
}
