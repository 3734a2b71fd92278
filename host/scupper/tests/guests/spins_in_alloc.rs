//! Never finishes the allocation of its arguments: the guest's own allocator provides their memory.

use std::alloc::{GlobalAlloc, Layout, System};

use guests::{Drain, Node, Plan, Pod, spin};

guests::about!();
guests::planner!(plan);

struct Spinning;

#[global_allocator]
static ALLOCATOR: Spinning = Spinning;

// SAFETY: what it returns is what the system's allocator returns.
unsafe impl GlobalAlloc for Spinning {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // One pod in a list of pods is larger than all data about itself.
        if layout.size() >= 160 {
            spin();
        }
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

fn plan(_drain: Drain, _node: Node, _pods: Vec<Pod>, draft: Plan) -> Result<Plan, String> {
    Ok(draft)
}
