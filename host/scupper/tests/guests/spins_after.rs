//! Answers, and then never finishes its cleanup: the code after an answer is also guest code.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering};

use guests::{Drain, Node, Plan, Pod, spin};

guests::about!();
guests::planner!(plan);

static ANSWERED: AtomicBool = AtomicBool::new(false);

struct Spinning;

#[global_allocator]
static ALLOCATOR: Spinning = Spinning;

// SAFETY: what it returns is what the system's allocator returns.
unsafe impl GlobalAlloc for Spinning {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if ANSWERED.load(Ordering::Relaxed) {
            spin();
        }
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

fn plan(drain: Drain, node: Node, pods: Vec<Pod>, draft: Plan) -> Result<Plan, String> {
    // Only memory freed after the answer counts.
    std::mem::forget((drain, node, pods));
    ANSWERED.store(true, Ordering::Relaxed);
    Ok(draft)
}
