//! A linked policy, and its calls: each has a fresh store with limits on every resource, and returns only a value.

use std::future::Future;
use std::sync::{Arc, Mutex};

use scupper_engine::{HookPhase, Plan, Pod, PodRef, StepOutcome};
use scupper_policy_spec::{Capability, Grant, Limits};
use wasmtime::component::{Instance, InstancePre};
use wasmtime::{Engine, Store};

use super::bounds::Bounds;
use super::fault::{CallError, CallFault};
use super::meter::Meter;
use super::ticker::Ticker;
use super::usage::{CallResult, PolicyUsage};
use crate::imports::facts::caller::{CallerPod, FactCaller};
use crate::imports::facts::import::FactScope;
use crate::imports::store_data::{CallScope, PolicyContext, StepScope, StoreData};
use crate::imports::wasi::{Occasion, Wasi};
use crate::load::flaws::{self, Flaw};
use crate::wit::bindings::exports::scupper::drain::{about, hooks, planner, surroundings};
use crate::wit::bindings::scupper::drain::log::Level;
use crate::wit::from_wit;
use crate::wit::to_wit::{self, Lists, PlanLists};
use crate::{DrainInfo, PlanCall, StepCall};

/// A linked policy.
pub(crate) struct Guest {
    pub(crate) engine: Engine,
    pub(crate) ticker: Arc<Ticker>,
    pub(crate) context: Arc<PolicyContext>,
    pub(crate) limits: Limits,
    pub(crate) pre: InstancePre<StoreData>,
    pub(crate) exports: Exports,
    /// It has the grant `wasi`.
    pub(crate) wasi: bool,
}

/// The places of its exported functions.
pub(crate) struct Exports {
    pub(crate) about: about::GuestIndices,
    pub(crate) planner: Option<planner::GuestIndices>,
    pub(crate) hooks: Option<hooks::GuestIndices>,
    pub(crate) surroundings: Option<surroundings::GuestIndices>,
}

impl Exports {
    /// Finds every interface.
    pub(crate) fn of(pre: &InstancePre<StoreData>) -> wasmtime::Result<Self> {
        let has = |name: &str| pre.component().get_export_index(None, name).is_some();
        Ok(Self {
            about: about::GuestIndices::new(pre)?,
            planner: has("scupper:drain/planner@0.1.0")
                .then(|| planner::GuestIndices::new(pre))
                .transpose()?,
            hooks: has("scupper:drain/hooks@0.1.0")
                .then(|| hooks::GuestIndices::new(pre))
                .transpose()?,
            surroundings: has("scupper:drain/surroundings@0.1.0")
                .then(|| surroundings::GuestIndices::new(pre))
                .transpose()?,
        })
    }

    /// Checks the types of all of them.
    fn check(&self, store: &mut Store<StoreData>, instance: &Instance) -> wasmtime::Result<()> {
        self.about.load(&mut *store, instance)?;
        self.planner
            .as_ref()
            .map(|planner| planner.load(&mut *store, instance))
            .transpose()?;
        self.hooks
            .as_ref()
            .map(|hooks| hooks.load(&mut *store, instance))
            .transpose()?;
        self.surroundings
            .as_ref()
            .map(|surroundings| surroundings.load(&mut *store, instance))
            .transpose()?;
        Ok(())
    }
}

impl Guest {
    /// Calls `describe`. `Ok(Err(…))`: the types of its exports differ from ours.
    pub(crate) async fn describe(&self) -> Result<Result<about::Description, wasmtime::Error>, CallError> {
        let bounds = self.probe();
        let work = async {
            let (mut store, instance) = self.open(&bounds, None, (CallScope::Nothing, None)).await?;
            if let Err(error) = self.exports.check(&mut store, &instance) {
                return Ok(Err(error));
            }
            let about = self.exports.about.load(&mut store, &instance)?;
            about.call_describe(&mut store).await.map(Ok)
        };
        self.run("describe", &bounds, work, answered).await
    }

    /// Calls `check-config`, which returns the problems of its configuration.
    pub(crate) async fn check_config(&self) -> Result<Vec<about::Problem>, CallError> {
        let bounds = self.probe();
        let work = async {
            let (mut store, instance) = self.open(&bounds, None, (CallScope::Nothing, None)).await?;
            self.exports
                .about
                .load(&mut store, &instance)?
                .call_check_config(&mut store)
                .await
        };
        self.run("check-config", &bounds, work, answered).await
    }

    /// Calls `phases`, which returns the phases of its hooks.
    pub(crate) async fn phases(&self) -> Result<Vec<HookPhase>, CallError> {
        let Some(hooks) = &self.exports.hooks else {
            return Ok(Vec::new());
        };
        let bounds = self.probe();
        let work = async {
            let (mut store, instance) = self.open(&bounds, None, (CallScope::Nothing, None)).await?;
            hooks.load(&mut store, &instance)?.call_phases(&mut store).await
        };
        let phases = self.run("phases", &bounds, work, answered).await?;
        let mut phases: Vec<HookPhase> = phases.into_iter().map(from_wit::from_phase).collect();
        phases.sort_unstable();
        phases.dedup();
        Ok(phases)
    }

    /// Calls its planner. `Ok(Err(…))`: it refuses the drain.
    pub(crate) async fn make_plan(&self, call: &PlanCall<'_>) -> Result<Result<Plan, String>, CallError> {
        let bounds = Bounds::new(&self.limits, self.limits.plan_cpu, self.limits.plan_wall);
        self.plan_within(call, &bounds).await
    }

    /// The same, within the short time limit of loading.
    pub(crate) async fn dry_plan(&self, call: &PlanCall<'_>) -> Result<Result<Plan, String>, CallError> {
        self.plan_within(call, &self.probe()).await
    }

    async fn plan_within(
        &self,
        call: &PlanCall<'_>,
        bounds: &Bounds,
    ) -> Result<Result<Plan, String>, CallError> {
        const FUNCTION: &str = "make-plan";
        let Some(planner) = &self.exports.planner else {
            return Err(self.absent(FUNCTION));
        };
        let lists = Lists::of(call.node, call.pods, call.drain.own_pod);
        let draft = PlanLists::of(call.draft);
        let facts = self.fact_scope(Some(&call.drain), call.pods);
        let work = async {
            let (mut store, instance) = self
                .open(bounds, Some(&call.drain), (CallScope::Nothing, facts))
                .await?;
            let (pods, waves) = (lists.pods(), draft.waves());
            let (drain, node, plan) = (to_wit::drain(&call.drain), lists.node(), draft.plan(&waves));
            let planner = planner.load(&mut store, &instance)?;
            planner.call_make_plan(&mut store, drain, node, &pods, plan).await
        };
        let judge = |answer| match answer {
            Err(refusal) => Ok((Err(from_wit::message(refusal)), CallResult::Refused)),
            Ok(plan) => from_wit::plan(plan, call.pods.len(), call.draft, &self.context.policy)
                .map(|plan| (Ok(plan), CallResult::Ok))
                .map_err(CallFault::Answer),
        };
        self.run(FUNCTION, bounds, work, judge).await
    }

    /// Takes one step of a hook. The invalid parts of its answer go into the policy's log.
    pub(crate) async fn step(&self, call: &StepCall<'_>) -> Result<StepOutcome, CallError> {
        let judge = |outcome| {
            for flaw in flaws::of_answer(&outcome) {
                let line = format!("its answer to {} is not whole: {flaw}", call.step.phase);
                self.context.log(Level::Warn, &line);
            }
            match from_wit::outcome(outcome) {
                Ok(failed @ StepOutcome::Failed { .. }) => Ok((failed, CallResult::Failed)),
                Ok(outcome) => Ok((outcome, CallResult::Ok)),
                Err(broken) => Err(CallFault::Answer(broken)),
            }
        };
        self.step_judged(call, judge).await
    }

    /// The same for the policy's author: returns only the invalid parts of its answer.
    pub(crate) async fn try_step(&self, call: &StepCall<'_>) -> Result<Vec<Flaw>, CallError> {
        let judge = |outcome| Ok((flaws::of_answer(&outcome), CallResult::Ok));
        self.step_judged(call, judge).await
    }

    async fn step_judged<T>(
        &self,
        call: &StepCall<'_>,
        judge: impl FnOnce(hooks::Outcome) -> Result<(T, CallResult), CallFault>,
    ) -> Result<T, CallError> {
        const FUNCTION: &str = "step";
        let Some(hooks) = &self.exports.hooks else {
            return Err(self.absent(FUNCTION));
        };
        let lists = Lists::of(call.node, call.pods, call.drain.own_pod);
        let bounds = Bounds::new(&self.limits, self.limits.step_cpu, self.limits.step_wall);
        let facts = self.fact_scope(Some(&call.drain), call.pods);
        let work = async {
            let (mut store, instance) = self
                .open(
                    &bounds,
                    Some(&call.drain),
                    (CallScope::Granted(self.scope(call)), facts),
                )
                .await?;
            let pods = lists.pods();
            let call = hooks::Call {
                phase: from_wit::to_phase(call.step.phase),
                subject: from_wit::subject(&call.step.subject),
                drain: to_wit::drain(&call.drain),
                node: lists.node(),
                pods: &pods,
                state: &call.step.state,
            };
            hooks
                .load(&mut store, &instance)?
                .call_step(&mut store, call)
                .await
        };
        self.run(FUNCTION, &bounds, work, judge).await
    }

    /// The statistics of its calls so far.
    pub(crate) fn usage(&self) -> PolicyUsage {
        let PolicyContext {
            policy,
            digest,
            account,
            ..
        } = &*self.context;
        account.of(policy, digest, &self.limits)
    }

    /// Whom a call may ask about the cluster; `None`: the policy asks nothing.
    pub(crate) fn fact_scope(&self, drain: Option<&DrainInfo<'_>>, pods: &[&Pod]) -> Option<FactScope> {
        let asks = |grant: &Grant| grant.capability == Capability::Facts;
        if !self.context.grants.iter().any(asks) {
            return None;
        }
        let text = |of: fn(&DrainInfo<'_>) -> String| drain.map(of).unwrap_or_default();
        let facts = drain.and_then(|drain| drain.facts);
        Some(FactScope {
            facts: facts.map_or_else(Arc::default, Arc::clone),
            caller: FactCaller {
                cluster: Arc::clone(&self.context.cluster),
                trigger: text(|drain| drain.trigger.to_owned()),
                name: text(|drain| drain.name.to_owned()),
                id: text(|drain| drain.id.to_owned()),
                pods: pods.iter().map(|pod| CallerPod::of(pod)).collect(),
            },
            in_drain: drain.is_some(),
        })
    }

    fn scope(&self, call: &StepCall<'_>) -> StepScope {
        let of_pods = |grant: &Grant| match grant.capability {
            Capability::PodAnnotations => true,
            Capability::Events => grant.target == "pods",
            Capability::NodeAnnotations | Capability::Facts | Capability::Http | Capability::Secret => false,
        };
        let pods: Vec<PodRef> = match self.context.grants.iter().any(of_pods) {
            true => call.pods.iter().map(|pod| pod.id.clone()).collect(),
            false => Vec::new(),
        };
        StepScope {
            node: call.node.name.clone(),
            own_pod: call.drain.own_pod.cloned(),
            pods,
            leaving: call.step.leaving.clone(),
            machine_is_off: call.drain.machine_is_off,
        }
    }

    /// A fresh instance in a fresh store. Its limits already apply to the start function.
    pub(crate) async fn open(
        &self,
        bounds: &Bounds,
        drain: Option<&DrainInfo<'_>>,
        (scope, facts): (CallScope, Option<FactScope>),
    ) -> wasmtime::Result<(Store<StoreData>, Instance)> {
        let meter = Meter::new(&self.limits, bounds);
        let wasi = self.wasi.then(|| {
            Box::new(Mutex::new(Wasi::new(&Occasion {
                context: &self.context,
                counters: &bounds.counters,
                drain: drain.map(|drain| (drain.id, drain.now)),
                pure: scope.of_step().is_none(),
                handles: self.limits.handles,
            })))
        });
        let caller = StoreData::new(Arc::clone(&self.context), (scope, facts), meter, wasi);
        let mut store = Store::try_new(&self.engine, caller)?;
        store.limiter(|caller| &mut caller.meter);
        store.epoch_deadline_callback(|mut store| store.data_mut().meter.tick());
        store.set_epoch_deadline(1);
        store.set_hostcall_fuel(self.limits.answer_bytes);
        store.set_max_component_handles(self.limits.handles);
        let instance = self.pre.instantiate_async(&mut store).await?;
        Ok((store, instance))
    }

    /// Runs a call within its bounds, classifies its answer, and adds it to the statistics.
    pub(crate) async fn run<R, T>(
        &self,
        function: &'static str,
        bounds: &Bounds,
        work: impl Future<Output = wasmtime::Result<R>>,
        judge: impl FnOnce(R) -> Result<(T, CallResult), CallFault>,
    ) -> Result<T, CallError> {
        let answer = bounds.hold(&self.ticker, work).await.and_then(judge);
        let result = match &answer {
            Ok((_, result)) => *result,
            Err(fault) => fault.result(),
        };
        self.context.called(function, result, bounds.usage());
        answer
            .map(|(answer, _)| answer)
            .map_err(|fault| self.fault(function, fault))
    }

    /// The bounds of the calls while loading.
    fn probe(&self) -> Bounds {
        Bounds::new(&self.limits, self.limits.probe_cpu, self.limits.plan_wall)
    }

    fn absent(&self, function: &'static str) -> CallError {
        self.fault(
            function,
            CallFault::Other("it does not export this function".to_owned()),
        )
    }

    fn fault(&self, function: &'static str, fault: CallFault) -> CallError {
        CallError {
            policy: self.context.policy.clone(),
            function,
            fault,
        }
    }
}

/// Accepts every answer.
pub(crate) fn answered<R>(answer: R) -> Result<(R, CallResult), CallFault> {
    Ok((answer, CallResult::Ok))
}
