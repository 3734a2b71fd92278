//! A component as large as a Python policy: a real policy, and beside it a module like an interpreter with its
//! snapshot, half machine-like code and half data. The same numbers generate it every time.

use wasm_encoder::{
    BlockType, CodeSection, ConstExpr, DataSection, ElementSection, Elements, Function, FunctionSection,
    InstructionSink, MemArg, MemorySection, MemoryType, Module, RefType, TableSection, TableType,
    TypeSection, ValType,
};

use crate::component::beside;

/// Functions of the module.
const FUNCTIONS: u32 = 11_000;
/// Statements of a function.
const STATEMENTS: u32 = 44;
/// Locals that the statements work on.
const LOCALS: u32 = 8;
/// Bytes of the snapshot.
const DATA: usize = 11 << 20;
/// Of its memory, in pages of 64 KiB.
const PAGES: u64 = 192;

/// The component of a policy, enlarged.
pub(crate) fn grown(policy: &[u8]) -> Vec<u8> {
    beside(policy, &module())
}

fn module() -> Vec<u8> {
    let mut types = TypeSection::new();
    types.ty().function([ValType::I32; 2], [ValType::I32]);
    let (mut functions, mut code) = (FunctionSection::new(), CodeSection::new());
    let mut chance = Chance(1);
    for _ in 0..FUNCTIONS {
        functions.function(0);
        code.function(&function(&mut chance));
    }
    let mut tables = TableSection::new();
    tables.table(TableType {
        element_type: RefType::FUNCREF,
        table64: false,
        minimum: u64::from(FUNCTIONS),
        maximum: None,
        shared: false,
    });
    let mut elements = ElementSection::new();
    let all: Vec<u32> = (0..FUNCTIONS).collect();
    elements.active(None, &ConstExpr::i32_const(0), Elements::Functions(all.into()));
    let mut memories = MemorySection::new();
    memories.memory(MemoryType {
        minimum: PAGES,
        maximum: None,
        memory64: false,
        shared: false,
        page_size_log2: None,
    });
    let mut data = DataSection::new();
    let snapshot = (0..DATA).map(|_| chance.below(256) as u8);
    data.active(0, &ConstExpr::i32_const(0), snapshot);
    let mut module = Module::new();
    module
        .section(&types)
        .section(&functions)
        .section(&tables)
        .section(&memories)
        .section(&elements)
        .section(&code)
        .section(&data);
    module.finish()
}

fn function(chance: &mut Chance) -> Function {
    let mut function = Function::new([(LOCALS - 2, ValType::I32)]);
    let mut code = function.instructions();
    for _ in 0..STATEMENTS {
        statement(&mut code, chance);
    }
    code.local_get(2).end();
    function
}

/// The instructions of interpreters: loads, stores, branches, loops and calls.
fn statement(code: &mut InstructionSink<'_>, chance: &mut Chance) {
    let mut local = || chance.below(LOCALS);
    let (to, from, other) = (local(), local(), local());
    let place = MemArg {
        offset: u64::from(chance.below(1 << 20)),
        align: 2,
        memory_index: 0,
    };
    let number = i32::try_from(chance.below(1 << 16)).unwrap();
    match chance.below(6) {
        0 => code
            .local_get(from)
            .i32_const(0xffff)
            .i32_and()
            .i32_load(place)
            .local_set(to),
        1 => code
            .local_get(from)
            .i32_const(0xffff)
            .i32_and()
            .local_get(other)
            .i32_store(place),
        2 => code
            .local_get(from)
            .local_get(other)
            .i32_lt_s()
            .if_(BlockType::Empty)
            .local_get(from)
            .i32_const(number)
            .i32_mul()
            .local_set(to)
            .else_()
            .local_get(other)
            .local_get(to)
            .i32_xor()
            .local_set(to)
            .end(),
        3 => code
            .local_get(from)
            .local_get(other)
            .call(chance.below(FUNCTIONS))
            .local_set(to),
        4 => code
            .loop_(BlockType::Empty)
            .local_get(to)
            .i32_const(1)
            .i32_shr_u()
            .local_tee(to)
            .br_if(0)
            .end(),
        _ => code
            .local_get(from)
            .i32_const(number)
            .i32_add()
            .local_get(other)
            .i32_rotl()
            .local_set(to),
    };
}

/// Pseudo-random numbers, the same every time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as u32 % most
    }
}
