//! Sends the requests in its state, one instruction a line, and answers with the results. It requests the capabilities
//! in its configuration. It can also search its whole memory for a value, and publish what it has seen.

use guests::{Call, Description, Drain, Grant, Node, Outcome, Phase, Plan, Pod, cluster, config, http, log};
use http::{Method, Request};

guests::about!(wanting());
guests::planner!(plan);
guests::hooks!([Phase::BeforeDrain], step);

fn wanting() -> Description {
    let wants = config::get("wants").unwrap_or_default();
    wants
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(capability, target)| Grant {
            capability: capability.to_owned(),
            target: target.to_owned(),
        })
        .fold(
            Description::new("fetches", "0.1.0", "Sends requests")
                .wants(Grant::node_annotations("seen.example.com/")),
            Description::wants,
        )
}

fn plan(_drain: Drain, _node: Node, _pods: Vec<Pod>, _draft: Plan) -> Result<Plan, String> {
    let url = config::get("url").unwrap_or_default();
    Err(reported(&Request::get(url)))
}

fn step(call: &Call) -> Outcome {
    let script = String::from_utf8_lossy(&call.state).into_owned();
    let mut reported = Vec::new();
    let mut request = Request::get("");
    for line in script.lines() {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        request = act(verb, rest, request, &mut reported);
    }
    Outcome::failed(reported.join("; ")).into()
}

fn act(verb: &str, rest: &str, request: Request, reported: &mut Vec<String>) -> Request {
    let (first, second) = rest.split_once(' ').unwrap_or((rest, ""));
    let method = match verb {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "PATCH" => Method::Patch,
        "DELETE" => Method::Delete,
        "header" => return request.header(first, second.replace("\\r", "\r").replace("\\n", "\n")),
        "secret-header" => return request.secret_header(first, second),
        "bearer" => return request.secret_header_after("Authorization", "Bearer ", rest),
        "body" => return request.json_body(rest),
        "long-body" => return request.body(vec![b'x'; rest.parse().unwrap_or(0)]),
        "field" => return request.secret_field(first, second),
        "capture" => return request.capture(first, second),
        "timeout" => return request.timeout(std::time::Duration::from_millis(rest.parse().unwrap_or(0))),
        "send" => {
            for _ in 0..rest.parse().unwrap_or(1) {
                reported.push(self::reported(&request));
            }
            return request;
        }
        "length" => {
            reported.push(match request.send() {
                Ok(response) => response.body.len().to_string(),
                Err(error) => error.to_string(),
            });
            return request;
        }
        // Publishes everything it saw.
        "shout" => {
            let all = reported.join("; ");
            log::info!("{all}");
            let shouted = cluster::annotate_node("seen.example.com/all", &all);
            reported.push(format!("{shouted:?}"));
            return request;
        }
        "search" => {
            reported.push(format!("found {}", found(rest)));
            return request;
        }
        _ => {
            reported.push(format!("what is {verb}?"));
            return request;
        }
    };
    Request::new(method, rest)
}

fn reported(request: &Request) -> String {
    match request.send() {
        Ok(response) => {
            let headers: Vec<String> = response
                .headers
                .iter()
                .filter(|field| field.name != "content-length")
                .map(|field| format!("{}={}", field.name, field.value))
                .collect();
            format!(
                "{} [{}] [{}] {}",
                response.status,
                headers.join(","),
                response.captured.join(","),
                response.text()
            )
        }
        Err(error) => error.to_string(),
    }
}

/// Searches the whole memory. The value comes with every byte inverted, in hex, so that the search does not find the
/// question.
fn found(hidden: &str) -> bool {
    let digits = hidden.as_bytes().chunks(2);
    let hidden: Vec<u8> = digits
        .filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect();
    // SAFETY: a guest may read all of its own memory, which has at least one page.
    let memory = unsafe {
        let bytes = core::arch::wasm32::memory_size(0) << 16;
        std::slice::from_raw_parts(std::hint::black_box(1 as *const u8), bytes - 1)
    };
    memory.windows(hidden.len()).any(|window| {
        window
            .iter()
            .zip(&hidden)
            .all(|(seen, hidden)| seen ^ 0xff == *hidden)
    })
}
