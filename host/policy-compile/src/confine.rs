//! The rights that the compiler's child drops before it reads the first byte: everything in the kernel but memory, its
//! input and its output. A component that takes over the compiler finds no file, no socket, no program and no other
//! process.
//!
//! Two mechanisms do this: seccomp allows a short list of system calls, and Landlock denies files, TCP and signals. If
//! the kernel lacks one, the other still applies, and the driver reports it. Files that the driver inherited from its
//! own parent and passed on stay open in the child, but no system call that seccomp allows reads, writes or maps them.

use std::collections::BTreeMap;
use std::io;

use landlock::{
    ABI, Access, AccessFs, AccessNet, RestrictionStatus, Ruleset, RulesetAttr, RulesetError, RulesetStatus,
    Scope,
};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

/// Makes the kernel kill this process when its parent dies. Fails if the parent is already dead.
pub(crate) fn end_with_parent(parent: Option<Pid>) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // Checked only now: the kernel sends no signal for a parent that died before the request.
    if parent.is_some() && getppid() != parent {
        return Err(io::Error::other("the driver that started it is dead"));
    }
    Ok(())
}

/// Denies this thread files, the network and other processes. Returns one text for each mechanism that the kernel
/// lacks. Reading standard input and writing standard output and error still work.
pub(crate) fn confine() -> Vec<String> {
    let landlock = landlock().map_err(|why| format!("Landlock ({why})"));
    // Last: it denies the system calls that Landlock needs.
    let seccomp = seccomp().map_err(|why| format!("seccomp ({why})"));
    [landlock, seccomp].into_iter().filter_map(Result::err).collect()
}

/// Denies files, TCP, abstract sockets and signals, as far as the kernel supports it.
fn landlock() -> Result<(), String> {
    match restrict() {
        Ok(status) if status.ruleset == RulesetStatus::NotEnforced => {
            Err("this kernel has none, or it is switched off".to_owned())
        }
        Ok(_as_far_as_the_kernel_knows_it) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

fn restrict() -> Result<RestrictionStatus, RulesetError> {
    let newest = ABI::V6;
    Ruleset::default()
        .handle_access(AccessFs::from_all(newest))?
        .handle_access(AccessNet::from_all(newest))?
        .scope(Scope::from_all(newest))?
        .create()?
        .restrict_self()
}

/// Allows system calls for memory, time, ending its own threads, and the three open files. All others fail with EPERM.
fn seccomp() -> Result<(), String> {
    let filter = filter().map_err(|error| error.to_string())?;
    seccompiler::apply_filter(&filter).map_err(|error| error.to_string())
}

fn filter() -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = ALWAYS.iter().map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_read, vec![when([is(0, 0)?])?]);
    for call in [libc::SYS_write, libc::SYS_writev] {
        rules.insert(call, vec![when([is(0, 1)?])?, when([is(0, 2)?])?]);
    }
    let exec = bits(libc::PROT_EXEC);
    let anonymous = bits(libc::MAP_ANONYMOUS);
    rules.insert(
        libc::SYS_mmap,
        vec![when([has(2, exec, 0)?, has(3, anonymous, anonymous)?])?],
    );
    rules.insert(libc::SYS_mprotect, vec![when([has(2, exec, 0)?])?]);
    // The call by which a process sends a signal to itself; other targets are denied.
    let own = u64::from(std::process::id());
    rules.insert(libc::SYS_tgkill, vec![when([is(0, own)?])?]);
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let arch = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, refused, SeccompAction::Allow, arch)?.try_into()
}

/// System calls allowed with any arguments.
const ALWAYS: [i64; 20] = [
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_futex,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_madvise,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_sigaltstack,
];

fn when<const N: usize>(conditions: [SeccompCondition; N]) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(conditions.to_vec())
}

/// The argument, read as an `int` like the kernel does, equals this value.
fn is(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

/// These bits of the argument have this value.
fn has(argument: u8, mask: u64, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(
        argument,
        SeccompCmpArgLen::Qword,
        SeccompCmpOp::MaskedEq(mask),
        value,
    )
}

const fn bits(flags: libc::c_int) -> u64 {
    flags.unsigned_abs() as u64
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{ErrorKind, Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::unix::net::UnixStream;
    use std::path::Path;
    use std::process::Command;

    use rustix::process::{kill_process, test_kill_process};

    use super::*;

    /// Which operations fail, and how, in a confined thread; the rest of the process is unaffected.
    fn after(
        give_up: impl FnOnce() -> Vec<String> + Send + 'static,
        acts: Vec<Act>,
    ) -> (Vec<String>, Vec<(&'static str, Option<ErrorKind>)>) {
        std::thread::spawn(move || {
            let lacking = give_up();
            // Collected first: the confined thread could not print a panic.
            let done = acts
                .into_iter()
                .map(|(name, act)| (name, act().err().map(|error| error.kind())));
            let done = done.collect();
            (lacking, done)
        })
        .join()
        .unwrap()
    }

    type Act = (&'static str, Box<dyn FnOnce() -> io::Result<()> + Send>);

    fn act(name: &'static str, act: impl FnOnce() -> io::Result<()> + Send + 'static) -> Act {
        (name, Box::new(act))
    }

    fn files(there: &Path) -> Vec<Act> {
        let (token, new) = (there.join("token"), there.join("new"));
        fs::write(&token, "secret").unwrap();
        let list = there.to_owned();
        vec![
            act("read a file", move || fs::read(token).map(drop)),
            act("make a file", move || fs::write(new, "x")),
            act("list a directory", move || fs::read_dir(list).map(drop)),
        ]
    }

    fn network(port: u16) -> Vec<Act> {
        vec![
            act("connect", move || {
                TcpStream::connect(("127.0.0.1", port)).map(drop)
            }),
            act("listen", || TcpListener::bind("127.0.0.1:0").map(drop)),
        ]
    }

    #[test]
    fn a_confined_thread_opens_no_file_and_no_socket_and_reaches_no_process() {
        let dir = tempfile::tempdir().unwrap();
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut other = Command::new("sleep").arg("600").spawn().unwrap();
        let pid = Pid::from_child(&other);
        // Like a file that the driver inherited.
        let mut inherited = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(dir.path().join("inherited"))
            .unwrap();
        let (mut read, duplicated) = (inherited.try_clone().unwrap(), inherited.try_clone().unwrap());
        let mut acts = files(dir.path());
        acts.extend(network(server.local_addr().unwrap().port()));
        acts.extend([
            act("send a datagram", || UdpSocket::bind("127.0.0.1:0").map(drop)),
            act("make a pair of sockets", || UnixStream::pair().map(drop)),
            act("start a program", || Command::new("true").spawn().map(drop)),
            act("kill another process", move || {
                Ok(kill_process(pid, Signal::KILL)?)
            }),
            act("read an inherited file", move || read.read(&mut [0]).map(drop)),
            act("write to an inherited file", move || inherited.write_all(b"x")),
            act("duplicate an inherited file", move || {
                duplicated.try_clone().map(drop)
            }),
        ]);
        let (lacking, done) = after(confine, acts);
        let lives = test_kill_process(pid).is_ok();
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(lacking, [] as [&str; 0]);
        for (what, failed) in done {
            assert_eq!(failed, Some(ErrorKind::PermissionDenied), "{what}");
        }
        assert!(lives);
    }

    #[test]
    fn everything_the_compiler_needs_still_works() {
        let grow = act("take and give back memory", || {
            let mut many: Vec<Vec<u8>> = (0..64).map(|size| vec![1; size << 14]).collect();
            many.iter_mut().for_each(|one| one.resize(one.len() * 2, 2));
            let sum: usize = many
                .iter()
                .map(|one| one.iter().filter(|byte| **byte == 1).count())
                .sum();
            if sum > 0 {
                Ok(())
            } else {
                Err(io::Error::other("lost"))
            }
        });
        let rest = act("hash and tell the time", || {
            let mut map = std::collections::HashMap::new();
            map.insert(std::time::Instant::now(), 1);
            Ok(())
        });
        let (_, done) = after(confine, vec![grow, rest]);
        assert!(done.iter().all(|(_, failed)| failed.is_none()), "{done:?}");
    }

    #[test]
    fn landlock_alone_keeps_files_and_tcp_away() {
        let dir = tempfile::tempdir().unwrap();
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut acts = files(dir.path());
        acts.extend(network(server.local_addr().unwrap().port()));
        let (lacking, done) = after(|| landlock().err().into_iter().collect(), acts);
        if let Some(why) = lacking.first() {
            panic!("this kernel cannot show it: {why}");
        }
        for (what, failed) in done {
            assert_eq!(failed, Some(ErrorKind::PermissionDenied), "{what}");
        }
    }

    #[test]
    fn an_orphan_does_not_begin() {
        let parent = getppid();
        let stranger = Some(rustix::process::getpid());
        std::thread::spawn(move || {
            assert!(end_with_parent(stranger).is_err());
            assert!(end_with_parent(parent).is_ok());
            // This setting applies to the whole test program.
            set_parent_process_death_signal(None).unwrap();
        })
        .join()
        .unwrap();
    }
}
