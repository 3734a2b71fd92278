//! Hand-made components, byte by byte, as no compiler makes them.

use std::path::PathBuf;

use wasm_encoder::{
    CodeSection, ConstExpr, CustomSection, DataSection, ExportKind, ExportSection, Function, FunctionSection,
    GlobalSection, GlobalType, MemorySection, MemoryType, Module, TypeSection, ValType,
};
use wasmparser::{Parser, Payload};

use crate::support::{core_module, scratch};

/// The place of the module's answers in its memory.
const DESCRIPTION: i32 = 16;
const PHASES: i32 = 128;
const OUTCOME: i32 = 512;
/// The heap for arguments, behind everything else.
const HEAP: i32 = 64 * 1024;

/// A policy with one hook, whose every answer is a place in its memory.
pub(super) struct HandMade {
    /// The place of `describe`'s answer.
    pub(super) description: i32,
    /// The place of `phases`' answer.
    pub(super) phases: i32,
    /// The place of `step`'s answer.
    pub(super) outcome: i32,
    /// The place that its allocator returns; `None`: the next free one.
    pub(super) room: Option<i32>,
    /// The content of its memory.
    data: Vec<u8>,
    /// Additional functions without a caller.
    pub(super) more: Vec<Function>,
}

impl HandMade {
    /// A correct policy.
    pub(super) fn right() -> Self {
        let mut made = Self {
            description: DESCRIPTION,
            phases: PHASES,
            outcome: OUTCOME,
            room: None,
            data: vec![0; 1024],
            more: Vec::new(),
        };
        made.put(256, b"handmade");
        // Name, version and summary are the same text; then the state's version, no requests, no schema.
        for field in 0..3 {
            made.word(DESCRIPTION + 8 * field, 256);
            made.word(DESCRIPTION + 8 * field + 4, 8);
        }
        made.word(DESCRIPTION + 24, 1);
        made.list(PHASES, 200, 1);
        // Before the drain.
        made.put(200, &[1]);
        // Done.
        made.put(OUTCOME, &[0]);
        made
    }

    pub(super) fn put(&mut self, place: i32, bytes: &[u8]) {
        let place = usize::try_from(place).unwrap();
        self.data[place..place + bytes.len()].copy_from_slice(bytes);
    }

    pub(super) fn word(&mut self, place: i32, word: u32) {
        self.put(place, &word.to_le_bytes());
    }

    /// A list or a text: its place and its length.
    pub(super) fn list(&mut self, place: i32, pointer: u32, length: u32) {
        self.word(place, pointer);
        self.word(place + 4, length);
    }

    /// The component as a file.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        let component = xtask::encode(&self.module()).unwrap();
        let file = scratch().join(format!("handmade-{name}.wasm"));
        std::fs::write(&file, component).unwrap();
        file
    }

    fn module(&self) -> Vec<u8> {
        let more = u32::try_from(self.more.len()).unwrap();
        let mut types = TypeSection::new();
        types.ty().function([], [ValType::I32]);
        types.ty().function([ValType::I32], [ValType::I32]);
        types.ty().function([ValType::I32; 4], [ValType::I32]);
        let mut functions = FunctionSection::new();
        for ty in [0, 0, 0, 1, 2] {
            functions.function(ty);
        }
        (0..more).for_each(|_| {
            functions.function(1);
        });
        let mut memories = MemorySection::new();
        memories.memory(MemoryType {
            minimum: 16,
            maximum: None,
            memory64: false,
            shared: false,
            page_size_log2: None,
        });
        let mut globals = GlobalSection::new();
        let heap = GlobalType {
            val_type: ValType::I32,
            mutable: true,
            shared: false,
        };
        globals.global(heap, &ConstExpr::i32_const(HEAP));
        let mut exports = ExportSection::new();
        let names = [
            "scupper:drain/about@0.1.0#describe",
            "scupper:drain/about@0.1.0#check-config",
            "scupper:drain/hooks@0.1.0#phases",
            "scupper:drain/hooks@0.1.0#step",
            "cabi_realloc",
        ];
        for (index, name) in (0_u32..).zip(names) {
            exports.export(name, ExportKind::Func, index);
        }
        exports.export("memory", ExportKind::Memory, 0);
        let mut data = DataSection::new();
        data.active(0, &ConstExpr::i32_const(0), self.data.iter().copied());
        let mut module = Module::new();
        module
            .section(&types)
            .section(&functions)
            .section(&memories)
            .section(&globals)
            .section(&exports)
            .section(&self.code())
            .section(&data);
        with_types(module)
    }

    fn code(&self) -> CodeSection {
        let answer = |place: i32| {
            let mut function = Function::new([]);
            function.instructions().i32_const(place).end();
            function
        };
        let mut code = CodeSection::new();
        code.function(&answer(self.description));
        // No error: an empty list, at a place of its own.
        code.function(&answer(960));
        code.function(&answer(self.phases));
        code.function(&answer(self.outcome));
        code.function(&self.room.map_or_else(allocator, answer));
        self.more.iter().for_each(|function| {
            code.function(function);
        });
        code
    }
}

/// Allocates from a heap that only grows: rounds up, and moves the heap's end.
fn allocator() -> Function {
    let mut function = Function::new([(1, ValType::I32)]);
    function
        .instructions()
        .global_get(0)
        .local_get(2)
        .i32_add()
        .i32_const(1)
        .i32_sub()
        .i32_const(0)
        .local_get(2)
        .i32_sub()
        .i32_and()
        .local_tee(4)
        .local_get(3)
        .i32_add()
        .global_set(0)
        .local_get(4)
        .end();
    function
}

/// Custom sections of a module declare its world: that of a guest with the same exports.
fn with_types(mut module: Module) -> Vec<u8> {
    let guest = std::fs::read(core_module("steps")).unwrap();
    for payload in Parser::new(0).parse_all(&guest) {
        if let Payload::CustomSection(section) = payload.unwrap()
            && section.name().starts_with("component-type")
        {
            module.section(&CustomSection {
                name: section.name().into(),
                data: section.data().into(),
            });
        }
    }
    module.finish()
}
