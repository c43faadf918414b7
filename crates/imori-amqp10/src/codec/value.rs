//! Values of all types of AMQP 1.0 (part 1), as views of the input.

use std::fmt;

use crate::codec::check::{check, extent};
use crate::codec::constructor::*;
use crate::codec::error::ValueError;
use crate::codec::input::Input;

/// An ASCII name.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symbol<'a>(pub &'a str);

/// A time in milliseconds since the UNIX epoch.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

/// A value of any type. Everything nested in it is valid.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// `null`.
    #[default]
    Null,
    /// `boolean`.
    Bool(bool),
    /// `ubyte`.
    Ubyte(u8),
    /// `ushort`.
    Ushort(u16),
    /// `uint`.
    Uint(u32),
    /// `ulong`.
    Ulong(u64),
    /// `byte`.
    Byte(i8),
    /// `short`.
    Short(i16),
    /// `int`.
    Int(i32),
    /// `long`.
    Long(i64),
    /// `float`.
    Float(f32),
    /// `double`.
    Double(f64),
    /// `decimal32`, in the encoding of IEEE 754.
    Decimal32([u8; 4]),
    /// `decimal64`.
    Decimal64([u8; 8]),
    /// `decimal128`.
    Decimal128([u8; 16]),
    /// `char`.
    Char(char),
    /// `timestamp`.
    Timestamp(Timestamp),
    /// `uuid`.
    Uuid([u8; 16]),
    /// `binary`.
    Binary(&'a [u8]),
    /// `string`.
    String(&'a str),
    /// `symbol`.
    Symbol(Symbol<'a>),
    /// `list`.
    List(List<'a>),
    /// `map`.
    Map(Map<'a>),
    /// `array`.
    Array(Array<'a>),
    /// A value with a descriptor.
    Described(Described<'a>),
}

/// A list of values.
#[derive(Default, Clone, Copy)]
pub struct List<'a> {
    count: u32,
    bytes: &'a [u8],
}

/// Pairs of key and value in order; duplicate keys are possible.
#[derive(Default, Clone, Copy)]
pub struct Map<'a> {
    /// Number of keys and values together.
    count: u32,
    bytes: &'a [u8],
}

/// A list of values of one type.
#[derive(Default, Clone, Copy)]
pub struct Array<'a> {
    count: u32,
    /// The constructor of all elements, followed by the elements.
    bytes: &'a [u8],
}

/// The descriptor of a value: a number in the specification's types, usually a symbol elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Descriptor<'a> {
    /// A number; its upper half is the domain.
    Code(u64),
    /// A name.
    Name(Symbol<'a>),
}

/// A value with a descriptor.
#[derive(Clone, Copy)]
pub struct Described<'a> {
    /// The descriptor.
    pub descriptor: Descriptor<'a>,
    /// The constructor of the value.
    octet: u8,
    /// The bytes after the constructor.
    bytes: &'a [u8],
}

impl<'a> Value<'a> {
    /// Decodes the value at the start of the input and checks everything in it. Returns the bytes
    /// after it too.
    ///
    /// # Errors
    /// [`ValueError`].
    pub fn decode(input: &'a [u8]) -> Result<(Value<'a>, &'a [u8]), ValueError> {
        let mut input = Input::new(input);
        let octet = input.octet()?;
        let value = Value::read(octet, &mut input)?;
        Ok((value, input.rest()))
    }

    /// Decodes the value at the start of bytes that were checked before.
    pub(crate) fn decode_checked(bytes: &'a [u8]) -> Option<Value<'a>> {
        let mut input = Input::new(bytes);
        let octet = input.octet().ok()?;
        Value::read_as(octet, &mut input).ok()
    }

    /// Reads a value after its constructor and checks everything in it.
    pub(crate) fn read(octet: u8, input: &mut Input<'a>) -> Result<Value<'a>, ValueError> {
        check(octet, &mut input.clone())?;
        Value::read_as(octet, input)
    }

    /// Reads an already checked value after its constructor. A list, map or array is not parsed
    /// further.
    pub(crate) fn read_as(octet: u8, input: &mut Input<'a>) -> Result<Value<'a>, ValueError> {
        Ok(match octet {
            NULL => Value::Null,
            TRUE => Value::Bool(true),
            FALSE => Value::Bool(false),
            BOOLEAN => Value::Bool(input.boolean()?),
            UBYTE => Value::Ubyte(input.octet()?),
            USHORT => Value::Ushort(u16::from_be_bytes(input.array()?)),
            UINT_0 => Value::Uint(0),
            SMALL_UINT => Value::Uint(input.octet()?.into()),
            UINT => Value::Uint(u32::from_be_bytes(input.array()?)),
            ULONG_0 => Value::Ulong(0),
            SMALL_ULONG => Value::Ulong(input.octet()?.into()),
            ULONG => Value::Ulong(u64::from_be_bytes(input.array()?)),
            BYTE => Value::Byte(i8::from_be_bytes(input.array()?)),
            SHORT => Value::Short(i16::from_be_bytes(input.array()?)),
            SMALL_INT => Value::Int(i8::from_be_bytes(input.array()?).into()),
            INT => Value::Int(i32::from_be_bytes(input.array()?)),
            SMALL_LONG => Value::Long(i8::from_be_bytes(input.array()?).into()),
            LONG => Value::Long(i64::from_be_bytes(input.array()?)),
            FLOAT => Value::Float(f32::from_be_bytes(input.array()?)),
            DOUBLE => Value::Double(f64::from_be_bytes(input.array()?)),
            DECIMAL_32 => Value::Decimal32(input.array()?),
            DECIMAL_64 => Value::Decimal64(input.array()?),
            DECIMAL_128 => Value::Decimal128(input.array()?),
            CHAR => Value::Char(input.char()?),
            TIMESTAMP => Value::Timestamp(Timestamp(i64::from_be_bytes(input.array()?))),
            UUID => Value::Uuid(input.array()?),
            BINARY_8 | BINARY_32 => Value::Binary(input.variable(octet)?),
            STRING_8 | STRING_32 => Value::String(input.text(octet)?),
            SYMBOL_8 | SYMBOL_32 => Value::Symbol(Symbol(input.ascii(octet)?)),
            LIST_0 => Value::List(List::default()),
            LIST_8 | LIST_32 => {
                let (count, bytes) = input.compound(octet)?;
                Value::List(List { count, bytes })
            }
            MAP_8 | MAP_32 => {
                let (count, bytes) = input.compound(octet)?;
                Value::Map(Map { count, bytes })
            }
            ARRAY_8 | ARRAY_32 => {
                let (count, bytes) = input.compound(octet)?;
                Value::Array(Array { count, bytes })
            }
            DESCRIBED => {
                let descriptor = Descriptor::read(input)?;
                let octet = input.octet()?;
                let bytes = input.bytes(extent(octet, input.rest())?)?;
                Value::Described(Described { descriptor, octet, bytes })
            }
            octet => return Err(ValueError::UnknownConstructor { octet }),
        })
    }
}

impl<'a> List<'a> {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The encoded values, without length and count.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Iterates over the values.
    pub fn iter(&self) -> Values<'a> {
        Values { left: self.count, octet: None, input: Input::new(self.bytes) }
    }
}

impl<'a> Map<'a> {
    /// An empty map.
    pub const EMPTY: Map<'static> = Map { count: 0, bytes: &[] };

    /// Creates a map from encoded keys and values that are known to be valid.
    pub(crate) fn of(count: u32, bytes: &'a [u8]) -> Map<'a> {
        Map { count, bytes }
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.count as usize / 2
    }

    /// Whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The encoded keys and values, without length and count.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Iterates over the pairs.
    pub fn iter(&self) -> impl Iterator<Item = (Value<'a>, Value<'a>)> + use<'a> {
        let mut values = Values { left: self.count, octet: None, input: Input::new(self.bytes) };
        std::iter::from_fn(move || Some((values.next()?, values.next()?)))
    }

    /// Returns the value of the first key equal to `name`, as a symbol or a string.
    pub fn find(&self, name: &str) -> Option<Value<'a>> {
        let mut input = Input::new(self.bytes);
        for _ in 0..self.len() {
            let octet = input.octet().ok()?;
            let is_it = match octet {
                STRING_8 | STRING_32 | SYMBOL_8 | SYMBOL_32 => input.variable(octet).ok()? == name.as_bytes(),
                _ => {
                    input.bytes(extent(octet, input.rest()).ok()?).ok()?;
                    false
                }
            };
            let octet = input.octet().ok()?;
            if is_it {
                return Value::read_as(octet, &mut input).ok();
            }
            input.bytes(extent(octet, input.rest()).ok()?).ok()?;
        }
        None
    }
}

impl<'a> Array<'a> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether the array is empty.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The constructor of its elements and the encoded elements, without length and count.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Iterates over the elements.
    pub fn iter(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        // The array was checked, so reading succeeds; an empty one may lack the constructor.
        let mut input = Input::new(self.bytes);
        let (descriptor, octet) = element_constructor(&mut input).unwrap_or((None, NULL));
        let mut values = Values { left: self.count, octet: Some(octet), input };
        std::iter::from_fn(move || match descriptor {
            None => values.next(),
            Some(descriptor) => {
                let bytes = values.next_extent(octet)?;
                Some(Value::Described(Described { descriptor, octet, bytes }))
            }
        })
    }
}

impl<'a> Descriptor<'a> {
    /// Reads a descriptor with its constructor.
    pub(crate) fn read(input: &mut Input<'a>) -> Result<Descriptor<'a>, ValueError> {
        Ok(match input.octet()? {
            ULONG_0 => Descriptor::Code(0),
            SMALL_ULONG => Descriptor::Code(input.octet()?.into()),
            ULONG => Descriptor::Code(u64::from_be_bytes(input.array()?)),
            octet @ (SYMBOL_8 | SYMBOL_32) => Descriptor::Name(Symbol(input.ascii(octet)?)),
            _ => return Err(ValueError::Descriptor),
        })
    }
}

impl<'a> Described<'a> {
    /// Returns the value without its descriptor.
    pub fn value(&self) -> Value<'a> {
        // The value was checked, so reading succeeds.
        Value::read_as(self.octet, &mut Input::new(self.bytes)).unwrap_or_default()
    }

    /// Returns the constructor of the value, and the bytes after it.
    pub(crate) fn parts(&self) -> (u8, &'a [u8]) {
        (self.octet, self.bytes)
    }
}

/// Iterator over values, each with a constructor or all sharing one.
#[derive(Debug, Clone)]
pub struct Values<'a> {
    left: u32,
    octet: Option<u8>,
    input: Input<'a>,
}

impl<'a> Values<'a> {
    /// Returns the bytes of the next value, given the shared constructor.
    fn next_extent(&mut self, octet: u8) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        let len = extent(octet, self.input.rest()).ok()?;
        self.input.bytes(len).ok()
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = Value<'a>;

    #[inline]
    fn next(&mut self) -> Option<Value<'a>> {
        self.left = self.left.checked_sub(1)?;
        let octet = match self.octet {
            Some(octet) => octet,
            None => self.input.octet().ok()?,
        };
        // The values were checked, so a read fails only at the end.
        Value::read_as(octet, &mut self.input).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, usize::try_from(self.left).ok())
    }
}

// Values compare equal regardless of their encoding.

impl PartialEq for List<'_> {
    fn eq(&self, other: &List<'_>) -> bool {
        self.iter().eq(other.iter())
    }
}

impl PartialEq for Map<'_> {
    fn eq(&self, other: &Map<'_>) -> bool {
        self.iter().eq(other.iter())
    }
}

impl PartialEq for Array<'_> {
    fn eq(&self, other: &Array<'_>) -> bool {
        self.iter().eq(other.iter())
    }
}

impl PartialEq for Described<'_> {
    fn eq(&self, other: &Described<'_>) -> bool {
        self.descriptor == other.descriptor && self.value() == other.value()
    }
}

impl fmt::Debug for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl fmt::Debug for Map<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl fmt::Debug for Array<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl fmt::Debug for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Described").field(&self.descriptor).field(&self.value()).finish()
    }
}

/// Reads the descriptor and constructor shared by the elements of an array.
fn element_constructor<'a>(input: &mut Input<'a>) -> Result<(Option<Descriptor<'a>>, u8), ValueError> {
    match input.octet()? {
        DESCRIBED => Ok((Some(Descriptor::read(input)?), input.octet()?)),
        octet => Ok((None, octet)),
    }
}
