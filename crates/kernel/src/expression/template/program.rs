//! A template's program, with a payment before every instruction that could make or read much.
//! Filters and tests pay by themselves (`prices.rs`); operators cannot be replaced, so a filter of
//! ours takes their operands, pays, and puts them back.

use super::prices::{ADD, COMPARE, CONCAT, FLAT, ITEM, LIST, MAP, METHOD, MULTIPLY, SLICE};
use super::{NAME, first_line};
use minijinja::Value;
use minijinja::machinery::{CodeGenerator, Instruction, Instructions, parse};
use minijinja::syntax::SyntaxConfig;

/// How many levels of lists and maps a text can add to what it was given. The engine writes,
/// compares and drops values recursively.
const LEVELS_MAX: usize = 64;
/// Filters that put values into new lists, and those into another.
const NESTING: [&str; 7] = ["batch", "slice", "groupby", "zip", "items", "dictsort", "map"];
/// How many entries a map in a text has.
const ENTRIES_MAX: usize = 1_000;
/// The flag of `{% for .. recursive %}`.
const RECURSIVE: u8 = 2;
/// The place of filters that are looked up by name each time.
const BY_NAME: u8 = u8::MAX;

/// Compiles a text that was checked.
pub(super) fn compiled(text: &str) -> Result<Instructions<'_>, String> {
    let parsed = parse(text, NAME, SyntaxConfig::default()).map_err(|error| first_line(&error))?;
    let mut generator = CodeGenerator::new(NAME, text);
    generator.compile_stmt(&parsed);
    let (plain, _) = generator.finish();
    check_levels(&plain)?;

    let mut code = Vec::new();
    let mut places = Vec::new();
    for (index, instruction) in each(&plain) {
        places.push(code.len() as u32);
        let line = plain.get_line(index).unwrap_or(0) as u16;
        code.extend(metered(instruction)?.into_iter().map(|step| (step, line)));
    }
    places.push(code.len() as u32);

    let mut program = Instructions::new(NAME, text);
    for (mut step, line) in code {
        redirect(&mut step, &places);
        program.add_with_line(step, line);
    }
    Ok(program)
}

fn each<'p, 't>(plain: &'p Instructions<'t>) -> impl Iterator<Item = (u32, &'p Instruction<'t>)> {
    (0..).map_while(move |index| Some((index, plain.get(index)?)))
}

/// No value outlives an iteration of its loop, so a value can be nested by each instruction once,
/// unless a loop calls itself.
fn check_levels(plain: &Instructions<'_>) -> Result<(), String> {
    let mut levels = 0;
    let mut recursive = false;
    for (_, instruction) in each(plain) {
        match instruction {
            Instruction::BuildList(Some(_))
            | Instruction::BuildTuple(_)
            | Instruction::BuildMap(_)
            | Instruction::BuildKwargs(_) => levels += 1,
            Instruction::ApplyFilter(name, ..) if NESTING.contains(name) => levels += 2,
            Instruction::PushLoop(flags) => recursive |= flags & RECURSIVE != 0,
            _ => {}
        }
    }
    if levels > LEVELS_MAX {
        return Err(format!("a text builds at most {LEVELS_MAX} lists and maps"));
    }
    if recursive && levels > 0 {
        return Err("a text with a `recursive` loop cannot build lists or maps".to_owned());
    }
    Ok(())
}

/// An instruction with what is paid for it.
fn metered<'t>(instruction: &Instruction<'t>) -> Result<Vec<Instruction<'t>>, String> {
    let plain = instruction.clone();
    Ok(match instruction {
        // Through `Emit`, so that it is counted too; safe, because it is never escaped.
        Instruction::EmitRaw(text) => {
            let text = Value::from_safe_string((*text).to_owned());
            vec![Instruction::LoadConst(text), Instruction::Emit]
        }
        Instruction::Add => paid(ADD, 2, plain, true),
        Instruction::Mul => paid(MULTIPLY, 2, plain, true),
        Instruction::Slice => paid(SLICE, 4, plain, true),
        Instruction::StringConcat => paid(CONCAT, 2, plain, false),
        Instruction::Eq
        | Instruction::Ne
        | Instruction::Gt
        | Instruction::Gte
        | Instruction::Lt
        | Instruction::Lte
        | Instruction::In
        | Instruction::CompareAndPreserve(_) => paid(COMPARE, 2, plain, false),
        Instruction::GetItem => paid(ITEM, 2, plain, false),
        Instruction::UnpackList(_) => vec![pay(FLAT, 1), plain],
        Instruction::BuildMap(entries) if *entries > ENTRIES_MAX => {
            return Err(format!("a map in a text has at most {ENTRIES_MAX} entries"));
        }
        Instruction::BuildMap(entries) if *entries > 0 => {
            paid(MAP, 2 * *entries as u16, plain, false)
        }
        Instruction::CallMethod(_, Some(operands)) => paid(METHOD, *operands, plain, false),
        Instruction::UnpackLists(_) | Instruction::MergeKwargs(_) => {
            return Err("`*` and `**` cannot pass arguments in a text".to_owned());
        }
        _ => vec![plain],
    })
}

fn pay(price: &'static str, operands: u16) -> Instruction<'static> {
    Instruction::ApplyFilter(price, Some(operands), BY_NAME)
}

/// Pays for an operator: its operands come back in a list, the last one first.
fn paid<'s>(
    price: &'static str,
    operands: u16,
    plain: Instruction<'s>,
    lazy: bool,
) -> Vec<Instruction<'s>> {
    let mut steps = vec![pay(price, operands)];
    if operands > 1 {
        steps.push(Instruction::UnpackList(operands as usize));
    }
    steps.push(plain);
    steps.extend(lazy.then(|| pay(LIST, 1)));
    steps
}

fn redirect(step: &mut Instruction<'_>, places: &[u32]) {
    if let Instruction::Iterate(target)
    | Instruction::Jump(target)
    | Instruction::JumpIfFalse(target)
    | Instruction::JumpIfFalseOrPop(target)
    | Instruction::JumpIfTrueOrPop(target) = step
    {
        *target = places.get(*target as usize).copied().unwrap_or(*target);
    }
}
