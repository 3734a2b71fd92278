//! Findings as a person and as a program read them.

use super::*;

#[test]
fn findings_of_every_state() {
    let finding = |state| Finding {
        subject: "lifecycle API".to_owned(),
        // A new state does not compile here, and belongs into the list below.
        text: match state {
            FindingState::Fine => "LifecycleEvents are served",
            FindingState::Note => "they are served\ntwice",
            FindingState::Wrong => "they are not served",
        }
        .to_owned(),
        state,
        remedy: (state != FindingState::Fine)
            .then(|| "kubectl apply -f deploy/crds/lifecycle.yaml".to_owned()),
    };
    let findings = [FindingState::Fine, FindingState::Note, FindingState::Wrong].map(finding);
    let people = findings.each_ref().map(for_people).join("\n");
    let programs = findings
        .each_ref()
        .map(|it| Output::Json.document(&for_programs(it)));
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("doctor-text", people);
        insta::assert_snapshot!("doctor-json", programs.join("\n"));
    });
}
