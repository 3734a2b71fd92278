//! A snapshot of every text that `scupper policy` prints for people.

use std::io;
use std::path::Path;
use std::time::Duration;

use scupper_builder::Built;
use scupper_engine::{HookPhase, StepOutcome, WaitingOn};
use scupper_policy::{
    Compilation, ConfigProblem, Description, Examined, Flaw, LoadFault, MissingGrant, PolicyUsage, Usage,
};
use scupper_policy_spec::{Capability, Grant, Limits, PolicyMode, SpecSource};
use scupper_report::Format;

use super::{build, examine, run, test};
use crate::author::{Case, Difference, Figures, ScenarioError, ScenarioResult, Stepped};

fn text(text: &str) -> String {
    text.to_owned()
}

fn grant() -> Grant {
    Grant {
        capability: Capability::NodeAnnotations,
        target: text("example.com/"),
    }
}

fn usage() -> PolicyUsage {
    let most = Usage {
        cpu: Duration::from_millis(12),
        wall: Duration::from_millis(15),
        memory: 3 << 20,
        log_lines: 2,
        requests: 1,
        response_bytes: 900,
        ..Usage::default()
    };
    PolicyUsage {
        policy: text("mine"),
        digest: text("0a1b2c"),
        calls: 9,
        most,
        total: most,
        limits: Limits::default(),
    }
}

fn description(planner: bool, phases: &[HookPhase]) -> Description {
    Description {
        name: text("mine"),
        title: text("mine"),
        version: text("0.1.0"),
        summary: text("Keeps labelled pods."),
        state_version: 1,
        digest: text("0a1b2c"),
        grants: Vec::new(),
        phases: phases.to_vec(),
        node_selector: [].into(),
        mode: PolicyMode::Active,
        planner,
        config_schema: String::new(),
    }
}

fn examined(faults: Vec<LoadFault>) -> Examined {
    Examined {
        bytes: 70_000,
        description: Some(description(true, &[])),
        faults,
        usage: None,
    }
}

fn building() -> String {
    let built = Built {
        name: text("mine"),
        file: "target/policies/mine.wasm".into(),
        size: 70_000,
        sha256: text("0a1b2c"),
    };
    build::result_text(&built, Format::Human)
}

fn checking() -> Vec<String> {
    let faults = || {
        vec![
            LoadFault::Config(vec![ConfigProblem {
                key: text("label"),
                message: text("must not be empty"),
            }]),
            LoadFault::Flawed(vec![Flaw {
                field: text("name"),
                message: text("must be short"),
            }]),
            LoadFault::NotGranted(vec![MissingGrant {
                policy: text("mine"),
                grant: grant(),
                spec_source: SpecSource::File,
            }]),
            LoadFault::BrokenOff,
        ]
    };
    let verdict = |faults| {
        let examined = examined(faults);
        examine::verdict(Path::new("mine.wasm"), &examined, &examine::problems(&examined))
    };
    vec![verdict(Vec::new()), verdict(faults())]
}

fn inspecting() -> Vec<String> {
    let imports = [text("scupper:drain/log@0.1.0"), text("scupper:drain/facts@0.1.0")];
    let exports = [text("scupper:drain/planner@0.1.0")];
    let plain = description(true, &[]);
    let rich = Description {
        grants: vec![grant()],
        config_schema: text("{\n  \"type\": \"object\"\n}"),
        ..description(true, &[HookPhase::BeforeDrain, HookPhase::OnCancel])
    };
    let hooks = description(false, &[HookPhase::AfterDrain]);
    let measured = Examined {
        usage: Some(usage()),
        ..examined(Vec::new())
    };
    vec![
        examine::for_people(&plain, &examined(Vec::new()), &[], &exports),
        examine::for_people(&rich, &measured, &imports, &exports),
        examine::for_people(&hooks, &examined(Vec::new()), &imports, &exports),
    ]
}

fn stepping() -> Vec<String> {
    let pending = StepOutcome::Pending {
        state: Vec::new(),
        again_after: Duration::from_secs(1),
        progress: text("0 of 1 jobs ended"),
        waiting_for: vec![WaitingOn {
            what: text("job 17"),
            detail: text("it runs"),
            since: None,
        }],
    };
    let failed = |retry_after| StepOutcome::Failed {
        message: text("the server answered 500"),
        retry_after,
    };
    let outcomes = [
        pending,
        failed(Some(Duration::from_secs(5))),
        failed(None),
        StepOutcome::Done,
    ];
    let step = |(outcome, second): (StepOutcome, u64)| {
        let at = Duration::from_secs(second);
        run::step_lines(HookPhase::BeforeDrain, &Stepped { at, outcome }).join("\n")
    };
    outcomes.into_iter().zip(0..).map(step).collect()
}

fn measuring() -> String {
    let compiled = Compilation {
        bytes: 70_000,
        native: 210_000,
        took: Duration::from_millis(1234),
    };
    let functions = [("make-plan", None), ("step", Some(HookPhase::BeforeDrain))];
    let figures = functions.map(|(function, phase)| Figures {
        function,
        phase,
        calls: 100,
        median: Duration::from_micros(512),
        worst: Duration::from_micros(2048),
    });
    run::figures_for_people(&compiled, 110, &figures, Some(&usage()))
}

fn testing() -> Vec<String> {
    let case = Case {
        file: "scenarios/first.yaml".into(),
        policy: text("mine"),
        module: "mine.wasm".into(),
    };
    let result = |differences| {
        Ok(ScenarioResult {
            about: text("a labelled pod stays"),
            differences,
            story: (0..17).map(|line| format!("line {line} of the drain")).collect(),
            took_ms: 61_000,
        })
    };
    let difference = Difference {
        line: 7,
        what: text("outcome"),
        expected: text("Drained"),
        actual: text("Blocked"),
    };
    let unread = Err(ScenarioError::Read(io::Error::from(io::ErrorKind::NotFound)));
    vec![
        test::result_text(&case, &result(Vec::new()), false),
        test::result_text(&case, &result(Vec::new()), true),
        test::result_text(&case, &result(vec![difference]), false),
        test::result_text(&case, &unread, false),
    ]
}

#[test]
fn every_text() {
    let all = [
        ("build", vec![building()]),
        ("check", checking()),
        ("inspect", inspecting()),
        ("run", stepping()),
        ("bench", vec![measuring()]),
        ("test", testing()),
    ];
    let texts = all.map(|(command, texts)| format!("── {command}\n{}\n", texts.join("\n\n")));
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("texts", texts.concat());
    });
}
