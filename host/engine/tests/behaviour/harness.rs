//! A scripted host: it passes a test's events to a drain, and compares commands and notices with text.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test's host fails by panicking"
)]

mod objects;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use scupper_engine::{
    Answer, Budget, Checkpoint, Command, CommandId, Counts, Drain, Event, EvictAnswer, HumanDuration, Node,
    Notice, Outcome, PlanAnswer, Pod, Request, StepOutcome, Subject, Summary, Task, Time, Uid,
};

pub(crate) use objects::{budget, controller, ending, hooks, node, planner, pod, request, uncordon_request};
pub(crate) use scupper_engine::PodPhase;

/// The start time of every script.
pub(crate) const START: Time = Time::from_millis(1_000_000_000);

pub(crate) struct Host {
    pub(crate) drain: Drain,
    pub(crate) now: Time,
    open: Vec<Command>,
    answered: BTreeMap<String, CommandId>,
    version: u64,
    saved: Option<Checkpoint>,
    sums: Sums,
}

/// What a host has seen of a drain. At the end the summary must say the same.
#[derive(Default)]
struct Sums {
    counts: Counts,
    /// An earlier process began the drain: pods may have left that no process reports.
    is_resumed: bool,
}

impl Sums {
    fn command(&mut self, task: &Task) {
        match task {
            Task::Evict { .. } | Task::Delete { .. } => self.counts.evictions += 1,
            Task::Step { .. } => self.counts.hook_steps += 1,
            _ => {}
        }
    }

    fn answer(&mut self, answer: &Answer) {
        if let Answer::Evict(EvictAnswer::BudgetExhausted { .. } | EvictAnswer::BudgetNotObserved { .. }) =
            answer
        {
            self.counts.budget_refusals += 1;
        }
    }

    fn notice(&mut self, notice: &Notice) {
        match notice {
            Notice::PodGone { .. } => self.counts.gone += 1,
            Notice::WaveStarted { .. } => self.counts.waves += 1,
            Notice::Finished { outcome, summary } => self.check(outcome, summary),
            _ => {}
        }
    }

    fn check(&self, outcome: &Outcome, summary: &Summary) {
        let counts = &self.counts;
        let reported = if self.is_resumed {
            summary.gone.min(counts.gone)
        } else {
            summary.gone
        };
        assert_eq!(
            (
                reported,
                summary.waves,
                summary.evictions,
                summary.budget_refusals,
                summary.hook_steps
            ),
            (
                counts.gone,
                counts.waves,
                counts.evictions,
                counts.budget_refusals,
                counts.hook_steps
            ),
            "gone, waves, evictions, refusals and steps of a drain that ended as {outcome}: {summary:?}"
        );
    }
}

impl Host {
    pub(crate) fn new(request: Request) -> Self {
        Self::with(Drain::new(START, request), Sums::default())
    }

    pub(crate) fn resume(request: Request, checkpoint: Checkpoint) -> Self {
        let is_resumed = checkpoint.id == request.id;
        let sums = Sums {
            counts: if is_resumed {
                checkpoint.counts
            } else {
                Counts::default()
            },
            is_resumed,
        };
        Self::with(Drain::resume(START, request, checkpoint), sums)
    }

    fn with(drain: Drain, sums: Sums) -> Self {
        Self {
            drain,
            now: START,
            open: Vec::new(),
            answered: BTreeMap::new(),
            version: 100,
            saved: None,
            sums,
        }
    }

    /// The next command that the drain wants carried out.
    pub(crate) fn next_command(&mut self) -> Option<Command> {
        let command = self.drain.poll_command()?;
        self.sums.command(&command.task);
        Some(command)
    }

    /// The next notice of the drain.
    pub(crate) fn next_notice(&mut self) -> Option<Notice> {
        let notice = self.drain.poll_notice()?;
        self.sums.notice(&notice);
        Some(notice)
    }

    pub(crate) fn handle(&mut self, event: Event) -> &mut Self {
        self.drain.handle_event(self.now, event);
        self
    }

    /// The node uncordoned, these pods, no budgets.
    pub(crate) fn begin(&mut self, pods: &[Pod]) -> &mut Self {
        self.begin_with(node(), pods, &[])
    }

    pub(crate) fn begin_with(&mut self, node: Node, pods: &[Pod], budgets: &[Budget]) -> &mut Self {
        self.handle(Event::Node(Some(node)))
            .handle(Event::Pods(pods.to_vec()))
            .handle(Event::Budgets(budgets.to_vec()))
    }

    /// Advances the time, firing every timer on the way.
    pub(crate) fn wait(&mut self, millis: u64) -> &mut Self {
        let end = self.now + Duration::from_millis(millis);
        let mut rounds = 0;
        while let Some(timer) = self.drain.poll_timeout().filter(|timer| *timer <= end) {
            assert!(
                timer > self.now,
                "a timer in the past: {timer:?} at {:?}",
                self.now
            );
            self.now = timer;
            self.drain.handle_timeout(timer);
            rounds += 1;
            assert!(rounds < 10_000, "the drain never rests");
        }
        self.now = end;
        self.drain.handle_timeout(end);
        self
    }

    /// Compares the commands since the last call with these lines.
    #[track_caller]
    pub(crate) fn does(&mut self, expected: &str) -> &mut Self {
        let mut text = String::new();
        while let Some(command) = self.next_command() {
            writeln!(text, "{}", line(&command.task)).unwrap();
            self.picked_up(command);
        }
        assert_eq!(lines(&text), lines(expected), "what the drain does");
        self
    }

    /// Accepts any commands.
    pub(crate) fn skip(&mut self) -> &mut Self {
        while let Some(command) = self.next_command() {
            self.picked_up(command);
        }
        self
    }

    fn picked_up(&mut self, command: Command) {
        self.saved = checkpoint(&command.task).or_else(|| self.saved.take());
        self.open.push(command);
    }

    /// Compares the notices since the last call with these lines.
    #[track_caller]
    pub(crate) fn reports(&mut self, expected: &str) -> &mut Self {
        let text = self.notices();
        assert_eq!(lines(&text), lines(expected), "what the drain tells");
        self
    }

    /// Compares the last notice with this line.
    #[track_caller]
    pub(crate) fn reports_last(&mut self, expected: &str) -> &mut Self {
        let text = self.notices();
        assert_eq!(text.lines().last(), Some(expected), "{text}");
        self
    }

    pub(crate) fn notices(&mut self) -> String {
        let mut text = String::new();
        while let Some(notice) = self.next_notice() {
            writeln!(text, "{}", notice_text(self.now, &notice)).unwrap();
        }
        text
    }

    /// The reasons why pods wait, one line each.
    #[track_caller]
    pub(crate) fn waits(&mut self, expected: &str) -> &mut Self {
        let mut text = String::new();
        for (pod, reason) in self.drain.waiting() {
            writeln!(text, "{pod} {}", reason.name()).unwrap();
        }
        assert_eq!(lines(&text), lines(expected), "why pods wait");
        self
    }

    /// Answers the oldest command whose line begins like this.
    #[track_caller]
    pub(crate) fn answer(&mut self, begins: &str, answer: Answer) -> &mut Self {
        self.skip();
        let place = self
            .open
            .iter()
            .position(|command| line(&command.task).starts_with(begins));
        let Some(place) = place else {
            let open: Vec<_> = self.open.iter().map(|command| line(&command.task)).collect();
            panic!("nothing to answer begins with {begins:?}: {open:?}");
        };
        let command = self.open.remove(place);
        self.answered.insert(begins.to_owned(), command.id);
        self.sums.answer(&answer);
        self.handle(Event::Answer(command.id, answer))
    }

    /// Whether a command whose line begins like this waits for its answer.
    pub(crate) fn asks(&mut self, begins: &str) -> bool {
        self.skip();
        let mut open = self.open.iter();
        open.any(|command| line(&command.task).starts_with(begins))
    }

    /// Sends the same answer once more.
    pub(crate) fn answer_again(&mut self, begins: &str, answer: Answer) -> &mut Self {
        let id = *self.answered.get(begins).unwrap();
        self.handle(Event::Answer(id, answer))
    }

    /// The write succeeds.
    #[track_caller]
    pub(crate) fn written(&mut self, begins: &str) -> &mut Self {
        self.version += 1;
        let version = self.version.to_string();
        self.answer(begins, Answer::Written { version })
    }

    #[track_caller]
    pub(crate) fn accepted(&mut self, begins: &str) -> &mut Self {
        self.answer(begins, Answer::Evict(EvictAnswer::Accepted))
    }

    #[track_caller]
    pub(crate) fn planned(
        &mut self,
        policy: &str,
        edit: impl FnOnce(&mut scupper_engine::Plan),
    ) -> &mut Self {
        self.skip();
        let begins = format!("plan {policy}");
        let draft = self.open.iter().find_map(|command| match &command.task {
            Task::Plan { policy: asked, draft } if asked == policy => Some(draft.clone()),
            _ => None,
        });
        let mut plan = draft.unwrap();
        edit(&mut plan);
        self.answer(&begins, Answer::Plan(PlanAnswer::Plan(plan)))
    }

    #[track_caller]
    pub(crate) fn stepped(&mut self, begins: &str, outcome: StepOutcome) -> &mut Self {
        self.stepped_by(begins, outcome, None)
    }

    /// A step by a policy that writes this version of its state.
    #[track_caller]
    pub(crate) fn stepped_by(
        &mut self,
        begins: &str,
        outcome: StepOutcome,
        state_version: Option<u32>,
    ) -> &mut Self {
        let answer = Answer::Step {
            outcome,
            state_version,
        };
        self.answer(begins, answer)
    }

    /// The pods are seen deleted.
    pub(crate) fn gone(&mut self, uids: &[&str]) -> &mut Self {
        for uid in uids {
            self.handle(Event::PodDeleted(Uid((*uid).to_owned())));
        }
        self
    }

    #[track_caller]
    pub(crate) fn listed(&mut self, pods: &[Pod]) -> &mut Self {
        self.answer("list-pods", Answer::Pods(pods.to_vec()))
    }

    #[track_caller]
    pub(crate) fn ends(&mut self, outcome: &Outcome) -> &mut Self {
        let finished = self.notices();
        assert_eq!(self.drain.outcome(), Some(outcome));
        let last = finished.lines().last();
        assert_eq!(last, Some(&*format!("finished: {outcome}")), "{finished}");
        assert_eq!(self.drain.poll_timeout(), None);
        self
    }

    /// The end's report of actions and cost.
    pub(crate) fn summary(&mut self) -> Summary {
        let mut last = None;
        while let Some(notice) = self.next_notice() {
            if let Notice::Finished { summary, .. } = notice {
                last = Some(summary);
            }
        }
        last.unwrap()
    }

    /// The checkpoint of the last write.
    pub(crate) fn last_checkpoint(&self) -> Checkpoint {
        self.saved.clone().unwrap()
    }
}

fn checkpoint(task: &Task) -> Option<Checkpoint> {
    match task {
        Task::Cordon { checkpoint, .. } | Task::Save { checkpoint, .. } => Some(checkpoint.clone()),
        Task::Uncordon { checkpoint, .. } => checkpoint.clone(),
        _ => None,
    }
}

fn lines(text: &str) -> Vec<&str> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect()
}

/// A command as one line.
fn line(task: &Task) -> String {
    let grace = |grace: &Option<u64>| grace.map_or_else(String::new, |secs| format!(" grace {secs}"));
    let own = |checkpoint: &Checkpoint| if checkpoint.own_cordon { "ours" } else { "not ours" };
    match task {
        Task::Plan { policy, .. } => format!("plan {policy}"),
        Task::Step { step, state_version } => {
            let state = String::from_utf8_lossy(&step.state).into_owned();
            let version = state_version.map_or_else(String::new, |version| format!(" of version {version}"));
            let state = if state.is_empty() {
                version
            } else {
                format!(" after {state}{version}")
            };
            format!(
                "step {} {} {}{state}",
                step.policy,
                step.phase,
                subject(&step.subject)
            )
        }
        Task::Cordon { version, .. } => format!("cordon at {version}"),
        Task::Save { checkpoint, .. } => format!("save {}, {}", checkpoint.phase, own(checkpoint)),
        Task::Uncordon {
            checkpoint, version, ..
        } => {
            let keeps = if checkpoint.is_some() {
                ", keeps the checkpoint"
            } else {
                ""
            };
            format!("uncordon at {version}{keeps}")
        }
        Task::Forget { .. } => "forget".to_owned(),
        Task::Evict { pod, grace_seconds } => format!("evict {}{}", pod.uid, grace(grace_seconds)),
        Task::Delete { pod, grace_seconds } => format!("delete {}{}", pod.uid, grace(grace_seconds)),
        Task::ListPods => "list-pods".to_owned(),
        Task::ListVolumes => "list-volumes".to_owned(),
    }
}

fn subject(subject: &Subject) -> String {
    match subject {
        Subject::Node => "node".to_owned(),
        Subject::Wave(name) => format!("wave {name}"),
        Subject::Pod(uid) => format!("pod {uid}"),
    }
}

/// A notice as one line.
fn notice_text(now: Time, notice: &Notice) -> String {
    match notice {
        Notice::Phase(phase) => format!("phase {phase}"),
        Notice::Planned(plan) => {
            let waves: Vec<_> = plan
                .waves
                .iter()
                .map(|wave| format!("{} {}", wave.name, wave.pods.len()))
                .collect();
            format!("planned {} pods: {}", plan.decisions.len(), waves.join(", "))
        }
        Notice::Cordoned { ours } => format!("cordoned, ours: {ours}"),
        Notice::PlannerWaiting {
            policy,
            message,
            again,
        } => format!(
            "planner {policy} waits {}: {message}",
            HumanDuration(again.since(now))
        ),
        Notice::HookWaiting {
            policy,
            phase,
            since,
            progress,
            ..
        } if *since < now => format!(
            "hook {policy} {phase} for {}: {progress}",
            HumanDuration(now.since(*since))
        ),
        Notice::HookWaiting {
            policy,
            phase,
            progress,
            ..
        } => format!("hook {policy} {phase}: {progress}"),
        Notice::HookDone {
            policy,
            phase,
            subject: s,
        } => format!("hook {policy} {phase} {} done", subject(s)),
        Notice::WaveStarted {
            name,
            number,
            of,
            pods,
        } => format!("wave {name} {number}/{of}: {pods}"),
        Notice::WaveOverdue { name } => format!("wave {name} overdue"),
        Notice::PodWaits { pod, reason } if reason.stays() => format!("{} stays: {reason}", pod.uid),
        Notice::PodWaits { pod, reason } => format!("{} waits: {}", pod.uid, reason.name()),
        Notice::PodLeaving { pod } => format!("{} leaves", pod.uid),
        Notice::PodGone { pod, remaining } => format!("{} gone, {remaining} left", pod.uid),
        Notice::Newcomer { pod } => format!("{} came", pod.uid),
        Notice::AwaitsVolumes { left, since, until } => format!(
            "awaits volumes since {}, for {}: {left}",
            HumanDuration(now.since(*since)),
            HumanDuration(until.since(now))
        ),
        Notice::VolumesSettled { left: Some(left) } => format!("volumes settled: {left}"),
        Notice::VolumesSettled { left: None } => "volumes detached".to_owned(),
        Notice::UncordonedByOthers => "uncordoned by others".to_owned(),
        Notice::Uncordoned => "uncordoned".to_owned(),
        Notice::Retrying { task, message } => format!("retrying {task}: {message}"),
        Notice::Finished { outcome, .. } => format!("finished: {outcome}"),
    }
}
