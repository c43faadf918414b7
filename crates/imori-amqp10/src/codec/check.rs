//! Validates a value and everything nested in it. Keeps its own stack, so nesting does not recurse.

use crate::codec::constructor::*;
use crate::codec::error::ValueError;
use crate::codec::input::{Input, is_small};
use crate::limits::{EMPTY_ELEMENTS_MAX, NESTING_MAX};

/// A list, map or array with values still to check.
#[derive(Default, Clone, Copy)]
struct Begun {
    /// Number of values left.
    left: usize,
    /// Bytes of the input after the end of this compound.
    behind: usize,
    /// The constructor shared by the elements of an array.
    octet: Option<u8>,
    /// Nesting depth of its values: lists, maps, arrays and descriptors around them.
    level: usize,
}

/// Consumes the value after a constructor and checks everything in it (SECURITY LIM-09).
#[inline]
pub(crate) fn check(octet: u8, input: &mut Input<'_>) -> Result<(), ValueError> {
    if is_nested(octet) { check_nested(octet, input) } else { check_flat(octet, input) }
}

/// Returns the length of a checked value after its constructor.
pub(crate) fn extent(octet: u8, bytes: &[u8]) -> Result<usize, ValueError> {
    let mut input = Input::new(bytes);
    let octet = behind_descriptors(octet, &mut input)?.0;
    match width(octet) {
        Some(len) => input.bytes(len)?,
        None => input.variable(octet)?,
    };
    Ok(bytes.len() - input.rest().len())
}

fn is_nested(octet: u8) -> bool {
    matches!(octet, DESCRIBED | LIST_8 | LIST_32 | MAP_8 | MAP_32 | ARRAY_8 | ARRAY_32)
}

/// Returns the number of bytes after a constructor; `None` if the value has a length field.
fn width(octet: u8) -> Option<usize> {
    // AMQP 1.0, 1.2: categories of constructors.
    match octet >> 4 {
        0x4 => Some(0),
        0x5 => Some(1),
        0x6 => Some(2),
        0x7 => Some(4),
        0x8 => Some(8),
        0x9 => Some(16),
        _ => None,
    }
}

/// Checks a value that contains no other values.
fn check_flat(octet: u8, input: &mut Input<'_>) -> Result<(), ValueError> {
    match (octet, width(octet)) {
        (BOOLEAN, _) => {
            input.boolean()?;
        }
        (CHAR, _) => {
            input.char()?;
        }
        (BINARY_8 | BINARY_32, _) => {
            input.variable(octet)?;
        }
        (STRING_8 | STRING_32, _) => {
            input.text(octet)?;
        }
        (SYMBOL_8 | SYMBOL_32, _) => {
            input.ascii(octet)?;
        }
        (octet, Some(width)) if is_known(octet) => {
            input.bytes(width)?;
        }
        (octet, _) => return Err(ValueError::UnknownConstructor { octet }),
    }
    Ok(())
}

/// Checks a value that contains other values; its constructor was already read.
fn check_nested(octet: u8, input: &mut Input<'_>) -> Result<(), ValueError> {
    let mut begun = [Begun::default(); NESTING_MAX];
    let mut depth = 0;
    let mut empties = EMPTY_ELEMENTS_MAX as usize;
    let mut next = Some((octet, 0));
    loop {
        if let Some((octet, outer)) = next {
            let (octet, descriptors) = behind_descriptors(octet, input)?;
            let level = outer + descriptors;
            if is_nested(octet) {
                let inner = Begun { level: level + 1, ..begin(octet, input, &mut empties)? };
                *begun.get_mut(depth).filter(|_| level < NESTING_MAX).ok_or(ValueError::TooDeep)? = inner;
                depth += 1;
            } else if level > NESTING_MAX {
                return Err(ValueError::TooDeep);
            } else {
                check_flat(octet, input)?;
            }
        }
        let Some(top) = depth.checked_sub(1).and_then(|top| begun.get_mut(top)) else {
            return Ok(());
        };
        // A value must end neither after nor before the end of its list.
        let room = input.rest().len().checked_sub(top.behind).ok_or(ValueError::TooShort)?;
        next = match (top.left.checked_sub(1), top.octet) {
            (None, _) if room > 0 => return Err(ValueError::TooLong),
            (None, _) => {
                depth -= 1;
                None
            }
            (Some(_), _) if room == 0 => return Err(ValueError::TooShort),
            (Some(left), octet) => {
                top.left = left;
                let octet = match octet {
                    Some(octet) => octet,
                    None => input.octet()?,
                };
                Some((octet, top.level))
            }
        };
    }
}

/// Skips descriptors; returns the constructor after them and the number of descriptors.
fn behind_descriptors(octet: u8, input: &mut Input<'_>) -> Result<(u8, usize), ValueError> {
    let (mut octet, mut descriptors) = (octet, 0);
    while octet == DESCRIBED {
        descriptors += 1;
        if descriptors > NESTING_MAX {
            return Err(ValueError::TooDeep);
        }
        octet = behind_descriptor(input)?;
    }
    Ok((octet, descriptors))
}

/// Skips a descriptor and returns the constructor after it.
fn behind_descriptor(input: &mut Input<'_>) -> Result<u8, ValueError> {
    match input.octet()? {
        ULONG_0 => {}
        SMALL_ULONG => {
            input.array::<1>()?;
        }
        ULONG => {
            input.array::<8>()?;
        }
        octet @ (SYMBOL_8 | SYMBOL_32) => {
            input.ascii(octet)?;
        }
        _ => return Err(ValueError::Descriptor),
    }
    input.octet()
}

/// Reads length and count of a list, map or array. Skips array elements that are always valid;
/// `empties` is the remaining allowance of elements without bytes.
fn begin(octet: u8, input: &mut Input<'_>, empties: &mut usize) -> Result<Begun, ValueError> {
    let len = if is_small(octet) { input.small()? } else { input.long()? };
    let behind = input.rest().len().checked_sub(len).ok_or(ValueError::TooShort)?;
    let count = if is_small(octet) { input.small()? } else { input.long()? };
    let begun = Begun { left: count, behind, octet: None, level: 0 };
    match octet {
        MAP_8 | MAP_32 if count % 2 == 1 => Err(ValueError::OddMap),
        ARRAY_8 | ARRAY_32 if count > 0 || input.rest().len() > behind => elements(begun, input, empties),
        _ => Ok(begun),
    }
}

/// Reads the constructor shared by the elements of an array.
fn elements(array: Begun, input: &mut Input<'_>, empties: &mut usize) -> Result<Begun, ValueError> {
    let octet = match input.octet()? {
        DESCRIBED => behind_descriptor(input)?,
        octet => octet,
    };
    if !is_known(octet) {
        return Err(ValueError::UnknownConstructor { octet });
    }
    match (octet, width(octet)) {
        // Elements with several shared descriptors have no practical use.
        (DESCRIBED, _) => Err(ValueError::TooDeep),
        (_, Some(0)) => {
            *empties = empties.checked_sub(array.left).ok_or(ValueError::TooManyEmpty)?;
            Ok(Begun { left: 0, ..array })
        }
        (BOOLEAN | CHAR, _) | (_, None) => Ok(Begun { octet: Some(octet), ..array }),
        (_, Some(width)) => {
            input.bytes(array.left.checked_mul(width).ok_or(ValueError::TooShort)?)?;
            Ok(Begun { left: 0, ..array })
        }
    }
}

fn is_known(octet: u8) -> bool {
    type_name(octet) != "none"
}
