//! Adds sections to an existing component, to make it as large as others.

use wasmparser::{Parser, Payload};

/// A component, and beside it one instance of a module that has no imports.
pub(crate) fn beside(component: &[u8], module: &[u8]) -> Vec<u8> {
    let number = core_modules(component);
    let mut component = component.to_vec();
    section(&mut component, 1, module);
    let mut instance = vec![1, 0];
    leb(&mut instance, number);
    instance.push(0);
    section(&mut component, 2, &instance);
    component
}

/// The number of modules at the top level of a component.
fn core_modules(component: &[u8]) -> u32 {
    let (mut count, mut depth) = (0, 0_u32);
    for payload in Parser::new(0).parse_all(component) {
        match payload.unwrap() {
            Payload::ModuleSection { .. } => {
                count += u32::from(depth == 0);
                depth += 1;
            }
            Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    count
}

/// Appends a section.
pub(crate) fn section(component: &mut Vec<u8>, id: u8, content: &[u8]) {
    component.push(id);
    leb(component, u32::try_from(content.len()).unwrap());
    component.extend_from_slice(content);
}

fn leb(bytes: &mut Vec<u8>, mut number: u32) {
    loop {
        let low = number as u8 & 0x7f;
        number >>= 7;
        bytes.push(if number == 0 { low } else { low | 0x80 });
        if number == 0 {
            return;
        }
    }
}
