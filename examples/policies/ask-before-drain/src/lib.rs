//! Waits until a server allows the drain of the node: a hook that sends requests to a configured URL.

use std::time::Duration;

use scupper_sdk::{
    Call, Description, Grant, Hooks, Outcome, Phase, Policy, Problem, config, description,
    http::{Request, escaped},
    retry::{Backoff, Retry},
};

/// The name of the secret with which the server knows us.
const TOKEN: &str = "token";

/// The waits between failed requests: 5s, 10s, 20s, 40s, then always 60s. `.tries(20)` would fail the drain after 20.
const BACKOFF: Backoff = Backoff::from_secs(5).at_most(Duration::from_secs(60));

const SCHEMA: &str = r#"{
  "type": "object",
  "additionalProperties": false,
  "required": ["url"],
  "properties": {
    "url": { "type": "string", "description": "GET URL?node=NAME answers 2xx if the drain may begin, 409 if not yet." }
  }
}"#;

struct AskBeforeDrain;

scupper_sdk::export!(AskBeforeDrain with hooks);

fn url() -> Result<String, Problem> {
    config::url("url", "https://drains.example.com/may-drain")
}

impl Policy for AskBeforeDrain {
    fn describe() -> Description {
        let about = description!("Waits until a server allows the drain")
            .config_schema(SCHEMA)
            .wants(Grant::secret(TOKEN));
        match url() {
            Ok(url) => about.wants(Grant::http("GET", &url)),
            // `check_config` says what is wrong with it.
            Err(_) => about,
        }
    }

    fn check_config() -> Vec<Problem> {
        config::check(&["url"], url())
    }
}

impl Hooks for AskBeforeDrain {
    fn phases() -> Vec<Phase> {
        vec![Phase::BeforeDrain]
    }

    fn step(call: &Call) -> Outcome {
        let url = match url() {
            Ok(url) => url,
            Err(problem) => return problem.into(),
        };
        let response = Request::get(format!("{url}?node={}", escaped(&call.node.name)))
            .secret_header_after("Authorization", "Bearer ", TOKEN)
            .timeout(Duration::from_secs(10))
            .send();
        let retry = Retry::of(&call.state);
        match response {
            Ok(response) if response.is_success() => Outcome::Done,
            Ok(response) if response.status == 409 => {
                Outcome::pending("the server does not allow the drain yet")
                    .again_after(Duration::from_secs(30))
                    .waiting_for(url, response.text(), None)
                    .into()
            }
            // 401 and 403: the token may be replaced while the drain waits.
            Ok(response) if response.is_transient() || matches!(response.status, 401 | 403) => {
                retry.again(&BACKOFF, format!("{url} answers with status {}", response.status))
            }
            Ok(response) => Outcome::failed(format!("{url} answers with status {}", response.status)).into(),
            Err(error) if error.is_transient() => retry.again(&BACKOFF, format!("{url}: {error}")),
            Err(error) => Outcome::failed(format!("{url}: {error}")).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use scupper_sdk::{
        Subject,
        http::{Error, Response},
        testing::{HookRun, Host},
    };

    use super::*;

    /// Runs the hook with a server that gives these answers, one after the other.
    fn run(answers: Vec<Result<u16, Error>>) -> HookRun {
        let host = Host::new();
        host.config("url", "https://drains.example.com/may-drain");
        let mut answers = answers.into_iter();
        host.on_request(move |request| {
            assert_eq!(request.url, "https://drains.example.com/may-drain?node=node-1");
            answers
                .next()
                .unwrap()
                .map(|status| Response::new(status, "a backup runs"))
        });
        host.run_hook::<AskBeforeDrain>(Phase::BeforeDrain, Subject::Node, 10)
    }

    #[test]
    fn the_drain_waits_until_the_server_allows_it() {
        let timeout = Error::Timeout("no response within 10s".to_owned());
        let ran = run(vec![Err(timeout), Ok(503), Ok(401), Ok(409), Ok(204)]);
        assert_eq!(ran.outcome(), Some(&Outcome::Done));
        assert_eq!(
            ran.progress(),
            [
                "try 1: https://drains.example.com/may-drain: timed out: no response within 10s",
                "try 2: https://drains.example.com/may-drain answers with status 503",
                "try 3: https://drains.example.com/may-drain answers with status 401",
                "the server does not allow the drain yet",
            ]
        );
        assert_eq!(ran.took, Duration::from_secs(5 + 10 + 20 + 30));
    }

    #[test]
    fn another_status_fails_the_drain() {
        let why = "https://drains.example.com/may-drain answers with status 404";
        assert_eq!(run(vec![Ok(404)]).outcomes, [Outcome::failed(why).into()]);
    }

    #[test]
    fn the_url_decides_which_grant_is_needed() {
        let host = Host::new();
        assert_eq!(AskBeforeDrain::check_config()[0].key, "url");
        host.config("url", "https://drains.example.com/may-drain");
        assert_eq!(AskBeforeDrain::check_config(), []);
        let wants = AskBeforeDrain::describe().wants;
        assert_eq!(wants[1].target, "GET https://drains.example.com/may-drain");
    }
}
