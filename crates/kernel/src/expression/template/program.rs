//! A template's program, with a payment before every instruction that could read much. It has only
//! the filters and tests that a text may use. Filters pay by themselves (`prices.rs`); operators
//! cannot be replaced, so a filter of ours takes their operands, pays, and puts them back.

use super::prices::{COMPARE, FILTERS, FLAT, ITEM, TESTS};
use super::{NAME, NO_OPERATOR, first_line, unknown};
use minijinja::Value;
use minijinja::machinery::{CodeGenerator, Instruction, Instructions, parse};
use minijinja::syntax::SyntaxConfig;

/// The place of filters that are looked up by name each time.
const BY_NAME: u8 = u8::MAX;

/// Compiles a text that was checked.
pub(super) fn compiled(text: &str) -> Result<Instructions<'_>, String> {
    let parsed = parse(text, NAME, SyntaxConfig::default()).map_err(|error| first_line(&error))?;
    let mut generator = CodeGenerator::new(NAME, text);
    generator.compile_stmt(&parsed);
    let (plain, _) = generator.finish();

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

/// An instruction with what is paid for it.
fn metered<'t>(instruction: &Instruction<'t>) -> Result<Vec<Instruction<'t>>, String> {
    let plain = instruction.clone();
    Ok(match instruction {
        // Through `Emit`, so that it is counted too; safe, because it is never escaped.
        Instruction::EmitRaw(text) => {
            let text = Value::from_safe_string((*text).to_owned());
            vec![Instruction::LoadConst(text), Instruction::Emit]
        }
        Instruction::Eq
        | Instruction::Ne
        | Instruction::Gt
        | Instruction::Gte
        | Instruction::Lt
        | Instruction::Lte
        | Instruction::In
        | Instruction::CompareAndPreserve(_) => paid(COMPARE, plain),
        Instruction::GetItem => paid(ITEM, plain),
        Instruction::UnpackList(_) => vec![pay(FLAT, 1), plain],
        Instruction::ApplyFilter(name, ..) if !FILTERS.contains(name) => {
            return Err(unknown("filter", name, &FILTERS));
        }
        Instruction::PerformTest(name, ..) if !TESTS.contains(name) => {
            return Err(unknown("test", name, &TESTS));
        }
        Instruction::Sub => return Err(NO_OPERATOR.to_owned()),
        Instruction::BuildList(Some(_)) | Instruction::BuildTuple(_) => {
            return Err("a text cannot make lists of values".to_owned());
        }
        Instruction::CallFunction(..)
        | Instruction::CallMethod(..)
        | Instruction::CallObject(_)
        | Instruction::FastRecurse => return Err("a text cannot call functions".to_owned()),
        _ => vec![plain],
    })
}

fn pay(price: &'static str, operands: u16) -> Instruction<'static> {
    Instruction::ApplyFilter(price, Some(operands), BY_NAME)
}

/// Pays for an operator of two operands, which come back in a list, the last one first.
fn paid<'s>(price: &'static str, plain: Instruction<'s>) -> Vec<Instruction<'s>> {
    vec![pay(price, 2), Instruction::UnpackList(2), plain]
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
