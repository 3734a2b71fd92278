//! Calls every verb of the engine, so that nothing of it is stripped. Built for bare wasm by `tests/purity.rs`; never
//! run.

use std::sync::Mutex;

use scupper_engine::{Drain, Event, Intent, Request, Settings, Time, Uid};

static DRAIN: Mutex<Option<Drain>> = Mutex::new(None);

#[unsafe(no_mangle)]
pub extern "C" fn begin(now: u64) {
    let request = Request {
        id: String::new(),
        name: String::new(),
        trigger: String::new(),
        intent: Intent::Drain,
        node: String::new(),
        deadline: None,
        settings: Settings::default(),
        policies: Vec::new(),
    };
    *DRAIN.lock().unwrap() = Some(Drain::new(Time::from_millis(now), request));
}

#[unsafe(no_mangle)]
pub extern "C" fn resume(now: u64) {
    let mut drain = DRAIN.lock().unwrap();
    let Some(old) = drain.take() else { return };
    let checkpoint = scupper_engine::Checkpoint {
        id: old.request().id.clone(),
        intent: old.request().intent,
        phase: old.phase(),
        ..scupper_engine::Checkpoint::blank(Uid::new(""), Time::from_millis(now))
    };
    *drain = Some(Drain::resume(Time::from_millis(now), old.request().clone(), checkpoint));
}

#[unsafe(no_mangle)]
pub extern "C" fn handle_event(now: u64) {
    if let Some(drain) = DRAIN.lock().unwrap().as_mut() {
        drain.handle_event(Time::from_millis(now), Event::Pods(Vec::new()));
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn handle_timeout(now: u64) {
    if let Some(drain) = DRAIN.lock().unwrap().as_mut() {
        drain.handle_timeout(Time::from_millis(now));
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn poll_command() -> u64 {
    let mut drain = DRAIN.lock().unwrap();
    let command = drain.as_mut().and_then(Drain::poll_command);
    command.map_or(0, |command| command.id.0)
}

#[unsafe(no_mangle)]
pub extern "C" fn poll_timeout() -> u64 {
    let drain = DRAIN.lock().unwrap();
    drain.as_ref().and_then(Drain::poll_timeout).map_or(0, Time::as_millis)
}

#[unsafe(no_mangle)]
pub extern "C" fn poll_notice() -> bool {
    let mut drain = DRAIN.lock().unwrap();
    drain.as_mut().and_then(Drain::poll_notice).is_some()
}

#[unsafe(no_mangle)]
pub extern "C" fn waiting() -> usize {
    let drain = DRAIN.lock().unwrap();
    drain.as_ref().map_or(0, |drain| drain.waiting().iter().map(|(_, reason)| reason.to_string().len()).sum())
}
