//! Policies built before `drain.held` existed: their record `drain` lacks this field, and nothing else differs.

use wasmtime::component::types::{ComponentItem, Type};
use wasmtime::component::{ComponentNamedList, ComponentType, Instance, InstancePre, Lift, Lower, TypedFunc};
use wasmtime::{Engine, Store};

use super::bindings::exports::scupper::drain::hooks;
use super::bindings::scupper::drain::types::{Drain, NodeParam, PlanParam, PlanResult, PodParam};
use crate::imports::store_data::StoreData;

const PLANNER: &str = "scupper:drain/planner@0.1.0";
const HOOKS: &str = "scupper:drain/hooks@0.1.0";

/// The former `drain`.
#[derive(Clone, Copy, ComponentType, Lower)]
#[component(record)]
struct FormerDrain<'a> {
    id: &'a str,
    name: &'a str,
    trigger: &'a str,
    started: u64,
    #[component(name = "found-drained")]
    found_drained: bool,
    deadline: Option<u64>,
    now: u64,
}

/// The former `call`.
#[derive(ComponentType, Lower)]
#[component(record)]
struct FormerCall<'a> {
    phase: hooks::Phase,
    subject: hooks::Subject<'a>,
    drain: FormerDrain<'a>,
    node: NodeParam<'a>,
    pods: &'a [PodParam<'a>],
    state: &'a [u8],
}

impl<'a> FormerDrain<'a> {
    const fn of(drain: Drain<'a>) -> Self {
        Self {
            id: drain.id,
            name: drain.name,
            trigger: drain.trigger,
            started: drain.started,
            found_drained: drain.found_drained,
            deadline: drain.deadline,
            now: drain.now,
        }
    }
}

/// Whether the component was built for the former record.
pub(crate) fn is_former(engine: &Engine, pre: &InstancePre<StoreData>) -> bool {
    let component = pre.component().component_type();
    let of = |interface: &str, function: &str| {
        let ComponentItem::ComponentInstance(interface) = component.get_export(engine, interface)?.ty else {
            return None;
        };
        let ComponentItem::ComponentFunc(function) = interface.get_export(engine, function)?.ty else {
            return None;
        };
        function.params().next().map(|(_, first)| first)
    };
    let drain = of(PLANNER, "make-plan").or_else(|| field(&of(HOOKS, "step")?, "drain"));
    drain.is_some_and(|drain| field(&drain, "found-drained").is_some() && field(&drain, "held").is_none())
}

fn field(record: &Type, name: &str) -> Option<Type> {
    let Type::Record(record) = record else { return None };
    record
        .fields()
        .find(|field| field.name == name)
        .map(|field| field.ty)
}

/// Checks the types of its exports.
pub(crate) fn check(
    store: &mut Store<StoreData>,
    instance: &Instance,
    (plans, hooks): (bool, bool),
) -> wasmtime::Result<()> {
    if plans {
        make_plan_of(store, instance)?;
    }
    if hooks {
        phases_of(store, instance)?;
        step_of(store, instance)?;
    }
    Ok(())
}

pub(crate) async fn make_plan(
    store: &mut Store<StoreData>,
    instance: &Instance,
    drain: Drain<'_>,
    node: NodeParam<'_>,
    (pods, plan): (&[PodParam<'_>], PlanParam<'_>),
) -> wasmtime::Result<Result<PlanResult, String>> {
    let function = make_plan_of(store, instance)?;
    let drain = FormerDrain::of(drain);
    Ok(function.call_async(store, (drain, node, pods, plan)).await?.0)
}

pub(crate) async fn phases(
    store: &mut Store<StoreData>,
    instance: &Instance,
) -> wasmtime::Result<Vec<hooks::Phase>> {
    Ok(phases_of(store, instance)?.call_async(store, ()).await?.0)
}

pub(crate) async fn step(
    store: &mut Store<StoreData>,
    instance: &Instance,
    call: hooks::Call<'_>,
) -> wasmtime::Result<hooks::Outcome> {
    let function = step_of(store, instance)?;
    let former = FormerCall {
        phase: call.phase,
        subject: call.subject,
        drain: FormerDrain::of(call.drain),
        node: call.node,
        pods: call.pods,
        state: call.state,
    };
    Ok(function.call_async(store, (former,)).await?.0)
}

type MakePlan<'a> = (FormerDrain<'a>, NodeParam<'a>, &'a [PodParam<'a>], PlanParam<'a>);

fn make_plan_of<'a>(
    store: &mut Store<StoreData>,
    instance: &Instance,
) -> wasmtime::Result<TypedFunc<MakePlan<'a>, (Result<PlanResult, String>,)>> {
    typed(store, instance, PLANNER, "make-plan")
}

fn phases_of(
    store: &mut Store<StoreData>,
    instance: &Instance,
) -> wasmtime::Result<TypedFunc<(), (Vec<hooks::Phase>,)>> {
    typed(store, instance, HOOKS, "phases")
}

fn step_of<'a>(
    store: &mut Store<StoreData>,
    instance: &Instance,
) -> wasmtime::Result<TypedFunc<(FormerCall<'a>,), (hooks::Outcome,)>> {
    typed(store, instance, HOOKS, "step")
}

fn typed<Params, Return>(
    store: &mut Store<StoreData>,
    instance: &Instance,
    interface: &str,
    name: &str,
) -> wasmtime::Result<TypedFunc<Params, Return>>
where
    Params: ComponentNamedList + Lower,
    Return: ComponentNamedList + Lift,
{
    let absent = || wasmtime::Error::msg(format!("there is no `{name}` in {interface}"));
    let interface = instance
        .get_export_index(&mut *store, None, interface)
        .ok_or_else(absent)?;
    let function = instance
        .get_export_index(&mut *store, Some(&interface), name)
        .ok_or_else(absent)?;
    instance.get_typed_func(store, function)
}
