//! `scupper demo`: the real driver, the real policy, a simulated cluster and a simulated kubelet.

mod args;
mod cluster_objects;
mod demo_cluster;
#[cfg(test)]
mod error_texts;
mod foresight;
mod node_drainer;
mod nvsentinel;
mod openstack;
mod openstack_testbed;
mod real_slurm;
mod stuck;

pub(crate) use args::DemoArgs;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use scupper_simulator::slinky::{self, Happening};

use cluster_objects::NODE;
use demo_cluster::{AbortOnDrop, DRIVER, DemoCluster, DemoError, UNCORDON};
use scupper::{Exit, fail};
use scupper_driver::PoliciesOptions;
use scupper_policy_spec::PolicySpec;
use scupper_report::{Format, tone_of};
use scupper_screen::Screen;

const GRANT: &str = "node-annotations:nodeset.slinky.slurm.net/";

/// Runs the demo.
pub(crate) async fn run(args: &DemoArgs, format: Format, screen: &Arc<Screen>) -> ExitCode {
    if format == Format::Human {
        screen.for_people(tone_of);
    }
    let screen = Arc::clone(screen);
    let output = &DemoOutput { format, screen };
    let played = match (&args.slurm, &args.openstack, &args.nvsentinel) {
        (_, _, Some(policies)) => nvsentinel::run(policies, output).await,
        (_, Some(policy), None) => openstack(args, policy, output).await,
        (Some(policy), None, None) if args.stuck => stuck::run(policy, output).await,
        (Some(policy), None, None) => match &args.slurm_testbed {
            Some(testbed) => real_slurm::run(policy, testbed, output).await,
            None => simulated_slurm(policy, output).await,
        },
        (None, None, None) => match (&args.forecast, &args.page) {
            (Some(policies), Some(page)) => foresight::run(policies, page, output).await,
            // The command line requires one of them.
            _ => Ok(()),
        },
    };
    match played {
        Ok(()) | Err(DemoError::Stopped) => Exit::Done.into(),
        Err(DemoError::Driver(error)) => scupper::driver_failed(&error),
        Err(DemoError::Environment(error)) => scupper::wrong_options(&error),
        Err(error) => fail(&error, Exit::Bug),
    }
}

/// Where a demo is shown.
#[derive(Clone)]
struct DemoOutput {
    format: Format,
    screen: Arc<Screen>,
}

impl DemoOutput {
    /// Prints a message for users, not for programs.
    fn speaker(&self) -> impl Fn(&str) + Clone + Send + Sync + 'static {
        let output = self.clone();
        move |text: &str| {
            if output.format == Format::Human {
                output.screen.print(text);
            }
        }
    }

    /// A writer for the lines of drains.
    fn lines(&self) -> Box<dyn Write + Send> {
        Box::new(self.screen.lines())
    }
}

async fn openstack(args: &DemoArgs, policy: &Path, output: &DemoOutput) -> Result<(), DemoError> {
    let (Some(testbed), Some(state)) = (&args.openstack_testbed, &args.openstack_state) else {
        // The command line requires both.
        return Ok(());
    };
    let places = openstack::Places {
        policy,
        testbed,
        state,
    };
    openstack::run(places, output).await
}

async fn simulated_slurm(policy: &Path, output: &DemoOutput) -> Result<(), DemoError> {
    let cluster = cluster_objects::cluster().await?;
    cluster_objects::build(&cluster.store()).map_err(DemoError::Scene)?;
    let say = output.speaker();
    let report = say.clone();
    let _operator = AbortOnDrop(tokio::spawn(slinky::run(cluster.store(), move |happening| {
        report(&reported(&happening));
    })));
    say(
        "A simulated cluster: node worker-1 with three Slurm workers that have jobs, a shop behind a disruption budget,",
    );
    say(
        "plain pods, a DaemonSet pod and a static pod; node worker-2 is empty. The driver and slurm.wasm are the real ones.",
    );
    let demo_cluster = DemoCluster::set(cluster, NODE, policies(policy), output).await?;
    say("\n$ kubectl create -f drain.yaml    # a LifecycleEvent: transition drain.slm.k8s.io, node worker-1");
    let mark = demo_cluster.mark();
    demo_cluster.transition("drain-worker-1", DRIVER).await?;
    say(&demo_cluster.requests(mark));

    say("\n$ kubectl create -f maintenance-complete.yaml    # transition drain.slm.k8s.io-uncordon");
    demo_cluster
        .transition("maintenance-complete-worker-1", UNCORDON)
        .await?;
    say("\nworker-1 takes pods again. Try the same on a cluster: README.md, `scupper --help`.");
    demo_cluster.clear().await
}

fn policies(file: &Path) -> PoliciesOptions {
    let slurm = PolicySpec {
        name: "slurm".to_owned(),
        file: file.to_owned(),
        grants: GRANT.parse().into_iter().collect(),
        config: BTreeMap::from([("poll-seconds".to_owned(), "1".to_owned())]),
        ..PolicySpec::default()
    };
    PoliciesOptions {
        policies: vec![slurm],
        ..PoliciesOptions::default()
    }
}

fn reported(happening: &Happening) -> String {
    match happening {
        Happening::Draining { pod, reason } => {
            format!("            (Slurm drains the node of {pod}: {reason})")
        }
        Happening::JobEnded { pod } => format!("            (the job on {pod} has ended)"),
        Happening::Resumed { pod } => format!("            (Slurm gives jobs to the node of {pod} again)"),
    }
}
