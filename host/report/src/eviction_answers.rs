//! Formats the API server's answers to evictions, for people and for machines.

use scupper_engine::{EvictAnswer, PodRef, Reason};
use serde_json::{Value, json};

use super::messages::one_line;

/// The answer as one sentence. What a budget says, a drain says in the same words.
pub fn answer_text(answer: &EvictAnswer) -> String {
    one_line(&match answer {
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
pub fn answers_to_json(answers: &[(PodRef, EvictAnswer)]) -> Value {
    let answers = answers.iter().map(|(pod, answer)| {
        json!({ "pod": pod.to_string(), "answer": name(answer), "message": answer_text(answer) })
    });
    Value::Array(answers.collect())
}
