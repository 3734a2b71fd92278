//! Where the limit settles on a model of a server with a queue, and what another client notices. Then the rules, one
//! by one.

use super::model::{Cost, Driver, Limiter, Report, Run, Server, ms};
use super::*;
use std::ops::Range;

const SEEDS: Range<u64> = 1..4;
/// A client that evicts without a look at the server.
const FLOOD: usize = 50;

/// The knee is at 8 cores × 5 ms ÷ 1 ms = 40.
fn fast() -> Server {
    Server::steady(8, ms(1), ms(4))
}

/// The knee is at 5.4: an API server on two cores, as it was measured.
fn medium() -> Server {
    Server::steady(2, ms(37), ms(63))
}

/// The knee is at 1.2.
fn slow() -> Server {
    Server::steady(1, ms(100), ms(20))
}

fn changing(cores: usize, cost: impl Fn(Duration) -> Cost + 'static) -> Server {
    Server {
        cores,
        cost: Box::new(cost),
    }
}

fn secs(range: Range<u64>) -> Range<Duration> {
    Duration::from_secs(range.start)..Duration::from_secs(range.end)
}

fn alone(server: Server, limiter: Limiter, pods: usize, seed: u64) -> Report {
    Run::of(server, vec![Driver::new(limiter, pods)], seed)
}

#[test]
fn the_limit_settles_near_the_knee_of_each_server() {
    for seed in SEEDS {
        for (server, pods, during, expected) in [
            (fast(), 8_000, ms(400)..ms(900), 32.0..56.0),
            (medium(), 2_000, ms(5_000)..ms(30_000), 5.4..11.0),
            (slow(), 300, ms(5_000)..ms(25_000), 1.2..6.0),
        ] {
            let in_flight = alone(server, Limiter::ours(), pods, seed).in_flight(0, &during);
            assert!(
                expected.contains(&in_flight),
                "seed {seed}: {in_flight}, {expected:?}"
            );
        }
    }
}

/// The model's flood costs the server nothing but its queue; a real one also slows it down.
#[test]
fn a_drain_is_about_as_fast_as_a_flood_and_less_than_half_as_noticeable() {
    for seed in SEEDS {
        for server in [medium, slow] {
            let [ours, flood] = [Limiter::ours(), Limiter::Fixed(FLOOD)].map(|limiter| {
                let report = alone(server(), limiter, 500, seed);
                (report.wall(), report.p99(&(Duration::ZERO..report.wall())))
            });
            assert!(
                ours.0 <= flood.0.mul_f64(1.1),
                "seed {seed}: {ours:?}, flood {flood:?}"
            );
            assert!(ours.1 * 2 <= flood.1, "seed {seed}: {ours:?}, flood {flood:?}");
        }
    }
}

/// Three drivers, each beginning this long after the one before, and with its clock this far ahead.
fn three(apart: Duration, ahead: Duration, seed: u64) -> Report {
    let driver = |place| Driver {
        begins: apart * place,
        clock_ahead: ahead * place,
        ..Driver::new(Limiter::ours(), 1_500)
    };
    Run::of(medium(), vec![driver(0), driver(1), driver(2)], seed)
}

#[test]
fn drivers_that_do_not_know_of_each_other_share_the_server() {
    let during = secs(20..50);
    for seed in SEEDS {
        let floods = [FLOOD; 3].map(|most| Driver::new(Limiter::Fixed(most), 1_500));
        let floods = Run::of(medium(), floods.into(), seed).p99(&during);
        for apart in [ms(0), ms(5_000)] {
            let report = three(apart, ms(0), seed);
            let (shares, all) = (report.shares(&during), report.all_in_flight(&during));
            assert!(
                shares.iter().all(|share| *share > 0.25),
                "seed {seed}: {shares:?}"
            );
            assert!(all < 24.0, "seed {seed}: {all}");
            let p99 = report.p99(&during);
            assert!(p99 * 4 <= floods, "seed {seed}: {p99:?}, floods {floods:?}");
        }
    }
}

/// They do not step back together, so that each takes the others for a part of the server.
#[test]
fn drivers_whose_clocks_differ_share_the_server_less_evenly_and_less_gently() {
    let during = secs(20..50);
    for seed in SEEDS {
        let report = three(ms(5_000), ms(1_733), seed);
        let (shares, all) = (report.shares(&during), report.all_in_flight(&during));
        assert!(
            shares.iter().all(|share| *share > 0.15),
            "seed {seed}: {shares:?}"
        );
        assert!(all < 60.0, "seed {seed}: {all}");
    }
}

/// `scupper drain --parallel 4`: each drain may have as many in flight as the limit says.
#[test]
fn drains_of_one_process_share_what_it_learns() {
    for seed in SEEDS {
        let limiter = Limiter::ours();
        let drains = [(); 4].map(|()| Driver::new(limiter.clone(), 500));
        let all = Run::of(medium(), drains.into(), seed).all_in_flight(&secs(5..30));
        assert!(all < 28.0, "seed {seed}: {all}");
    }
}

#[test]
fn a_server_that_becomes_slow_and_recovers_is_neither_flooded_nor_left_idle() {
    for seed in SEEDS {
        let server = changing(2, |at| {
            let times = if secs(10..40).contains(&at) { 10 } else { 1 };
            Cost::of(ms(37) * times, ms(63) * times)
        });
        let report = alone(server, Limiter::ours(), 2_000, seed);
        let slow = report.in_flight(0, &secs(15..40));
        assert!((1.5..14.0).contains(&slow), "seed {seed}: {slow}");
        let after = report.in_flight(0, &secs(45..55));
        assert!((5.0..14.0).contains(&after), "seed {seed}: {after}");
        let done = report.answers(&secs(45..55));
        assert!(done > 450, "seed {seed}: {done} in ten seconds, of 540");
    }
}

/// A webhook that hangs is not the server's work: more may wait for it at once.
#[test]
fn evictions_that_hang_in_a_webhook_wait_together() {
    for seed in SEEDS {
        let server = changing(2, |at| {
            let hangs = at >= Duration::from_secs(5);
            Cost::of(ms(5), ms(if hangs { 10_000 } else { 5 }))
        });
        let in_flight = alone(server, Limiter::ours(), 2_200, seed).in_flight(0, &secs(60..100));
        assert!(in_flight > 8.0, "seed {seed}: {in_flight}");
    }
}

/// 429 of flow control, 503, 504, or nothing within the time limit.
#[test]
fn a_server_that_refuses_gets_one_request_at_a_time_until_it_recovers() {
    for seed in SEEDS {
        let server = changing(2, |at| Cost {
            is_overloaded: secs(5..20).contains(&at),
            ..Cost::of(ms(37), ms(63))
        });
        let report = alone(server, Limiter::ours(), 1_500, seed);
        let refusing = report.in_flight(0, &secs(7..20));
        assert!(refusing < 1.5, "seed {seed}: {refusing}");
        let after = report.in_flight(0, &secs(25..30));
        assert!((4.0..14.0).contains(&after), "seed {seed}: {after}");
    }
}

const NOW: Time = Time::from_millis(1_790_000_000_123);

/// Rounds with as many requests at once as the limit allows.
fn rounds(in_flight: &mut InFlight, count: usize, answered: Answered) {
    for _ in 0..count {
        let tickets: Vec<_> = (0..in_flight.limit()).map(|_| in_flight.sent()).collect();
        for ticket in tickets {
            in_flight.answered(&ticket, answered, NOW);
        }
    }
}

#[test]
fn a_server_without_a_queue_gets_twice_as_many_each_round() {
    for time in [ms(0), ms(10), ms(10_000)] {
        let mut in_flight = InFlight::default();
        assert_eq!(in_flight.limit(), FIRST);
        rounds(&mut in_flight, 3, Answered::After(time));
        assert_eq!(in_flight.limit(), FIRST * 8);
        rounds(&mut in_flight, 100, Answered::After(time));
        assert_eq!(in_flight.limit(), MOST);
    }
}

#[test]
fn many_refusals_of_one_round_halve_the_limit_once() {
    let mut in_flight = InFlight::default();
    rounds(&mut in_flight, 3, Answered::After(ms(10)));
    let before = in_flight.limit();
    rounds(&mut in_flight, 1, Answered::Overloaded);
    assert_eq!(in_flight.limit(), before / 2);
    rounds(&mut in_flight, 10, Answered::Overloaded);
    assert_eq!(in_flight.limit(), 1, "never none");
}

#[test]
fn a_limit_that_is_not_used_does_not_grow() {
    let mut in_flight = InFlight::default();
    rounds(&mut in_flight, 2, Answered::After(ms(10)));
    let before = in_flight.limit();
    for _ in 0..100 {
        let ticket = in_flight.sent();
        in_flight.answered(&ticket, Answered::After(ms(10)), NOW);
    }
    assert_eq!(in_flight.limit(), before);
    // Neither do requests count that were given up.
    for _ in 0..100 {
        drop(in_flight.sent());
    }
    rounds(&mut in_flight, 1, Answered::Early);
    assert_eq!(in_flight.limit(), before);
}

#[test]
fn an_answer_before_the_work_is_done_changes_nothing() {
    let mut in_flight = InFlight::default();
    rounds(&mut in_flight, 2, Answered::After(ms(10)));
    let before = in_flight.limit();
    rounds(&mut in_flight, 10, Answered::Early);
    assert_eq!(in_flight.limit(), before);
}

/// The disk was busy for a moment.
#[test]
fn one_slow_round_costs_half_of_the_limit_at_most() {
    let mut in_flight = InFlight::default();
    rounds(&mut in_flight, 3, Answered::After(ms(10)));
    rounds(&mut in_flight, 1, Answered::After(ms(10_000)));
    assert_eq!(in_flight.limit(), FIRST * 4);
    rounds(&mut in_flight, 4, Answered::After(ms(10)));
    assert!(in_flight.limit() >= FIRST * 8, "{in_flight:?}");
}
