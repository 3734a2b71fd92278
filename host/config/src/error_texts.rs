//! A snapshot of every error of a configuration file.

use std::io;

use scupper_common::samples::errors;
use scupper_common::variants;

use super::{ConfigError, Problem};

variants!(ConfigError: Read NotAFile TooLarge Wrong);

#[test]
fn every_error() {
    let file = || "scupper.yaml".into();
    let problem = |line: usize| Problem {
        line,
        column: 3,
        field: if line == 1 {
            String::new()
        } else {
            format!("policies[{line}].module")
        },
        message: "must be a string, and this is a list".to_owned(),
    };
    let samples = [
        ConfigError::Read {
            file: file(),
            source: io::Error::from(io::ErrorKind::NotFound),
        },
        ConfigError::NotAFile(file()),
        ConfigError::TooLarge(file()),
        ConfigError::Wrong {
            file: file(),
            problems: (1..3).map(problem).collect(),
            readable: Vec::new(),
        },
    ];
    let many = [ConfigError::Wrong {
        file: file(),
        problems: (1..200).map(problem).collect(),
        readable: Vec::new(),
    }];
    let last = scupper_common::error::chain(&many[0]);
    let last = last.lines().last().unwrap();
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("errors", format!("{}… {last}\n", errors("ConfigError", &samples)));
    });
}
