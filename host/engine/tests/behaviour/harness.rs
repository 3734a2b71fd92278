//! A scripted host: it passes a test's events to a drain, and compares commands and notices with text.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test's host fails by panicking"
)]

mod objects;
mod texts;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use scupper_engine::{
    Answer, Budget, Checkpoint, Command, CommandId, Drain, Event, EvictAnswer, Node, Notice, Outcome,
    PlanAnswer, Pod, PodRef, Request, StepOutcome, Summary, Task, Time, Totals, Uid,
};

use texts::{line, notice_text};

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
    counts: Totals,
    /// The pods whose deletion was the last request for them.
    deleted: BTreeSet<Uid>,
    /// An earlier process began the drain: pods may have left that no process reports.
    is_resumed: bool,
    forced: Vec<PodRef>,
}

impl Sums {
    fn command(&mut self, task: &Task) {
        match task {
            Task::Evict { pod, .. } => {
                self.counts.evictions += 1;
                self.deleted.remove(&pod.uid);
            }
            Task::Delete { pod, .. } => {
                self.counts.evictions += 1;
                self.counts.deletions += 1;
                self.deleted.insert(pod.uid.clone());
            }
            Task::Step { .. } => self.counts.hook_steps += 1,
            _ => {}
        }
    }

    fn answer(&mut self, task: &Task, answer: &Answer) {
        if let Answer::Evict(EvictAnswer::BudgetExhausted { .. } | EvictAnswer::BudgetNotObserved { .. }) =
            answer
        {
            self.counts.budget_refusals += 1;
        }
        if let (Some(pod), Answer::Evict(EvictAnswer::Refused { .. })) = (task.removes(), answer) {
            self.deleted.remove(&pod.uid);
        }
    }

    fn notice(&mut self, notice: &Notice) {
        match notice {
            Notice::PodGone { pod, .. } => {
                self.counts.gone += 1;
                self.counts.deleted += u32::from(self.deleted.contains(&pod.uid));
            }
            Notice::WaveStarted { .. } => self.counts.waves += 1,
            Notice::Forced { pod, .. } if !self.forced.contains(pod) => self.forced.push(pod.clone()),
            Notice::Finished { outcome, summary } => self.check(outcome, summary),
            _ => {}
        }
    }

    fn check(&self, outcome: &Outcome, summary: &Summary) {
        assert_eq!(summary.forced, self.forced, "forced pods");
        let counts = &self.counts;
        let mut reported = Totals {
            hook_wait: counts.hook_wait,
            budget_wait: counts.budget_wait,
            ..summary.totals
        };
        if self.is_resumed {
            reported.gone = reported.gone.min(counts.gone);
        }
        assert_eq!(
            &reported, counts,
            "gone, deleted, waves, evictions, deletions, refusals and steps of a drain that ended as {outcome}: {summary:?}"
        );
    }
}

impl Host {
    pub(crate) fn new(request: Request) -> Self {
        Self::with(START, Drain::new(START, request), Sums::default())
    }

    pub(crate) fn resume(request: Request, checkpoint: Checkpoint) -> Self {
        Self::resume_at(START, request, checkpoint)
    }

    pub(crate) fn resume_at(now: Time, request: Request, checkpoint: Checkpoint) -> Self {
        let is_resumed = checkpoint.id == request.id;
        let sums = Sums {
            counts: if is_resumed {
                checkpoint.counts.totals
            } else {
                Totals::default()
            },
            is_resumed,
            ..Sums::default()
        };
        Self::with(now, Drain::resume(now, request, checkpoint), sums)
    }

    fn with(now: Time, drain: Drain, sums: Sums) -> Self {
        Self {
            drain,
            now,
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

    /// The leaving pods that the last step gets.
    pub(crate) fn told(&mut self) -> Vec<String> {
        self.skip();
        let step = |command: &Command| match &command.task {
            Task::Step { step, .. } => Some(step.leaving.clone()),
            _ => None,
        };
        let leaving = self.open.iter().rev().find_map(step).unwrap();
        leaving.into_iter().map(|uid| uid.as_str().to_owned()).collect()
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
        self.sums.answer(&command.task, &answer);
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

    /// The watch shows the cordoned node as the last write has left it.
    pub(crate) fn shows_the_mark(&mut self) -> &mut Self {
        self.skip();
        let node = Node {
            unschedulable: true,
            checkpoint: self.saved.clone(),
            resource_version: self.version.to_string(),
            ..node()
        };
        self.handle(Event::Node(Some(node)))
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
            self.handle(Event::PodDeleted(Uid::new(*uid)));
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
