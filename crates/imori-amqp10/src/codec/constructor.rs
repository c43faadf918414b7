//! Constructors: the octets before values that give type and width (AMQP 1.0, 1.2 and 1.6).

/// A descriptor and a value follow.
pub const DESCRIBED: u8 = 0x00;
/// `null`.
pub const NULL: u8 = 0x40;
/// `true`.
pub const TRUE: u8 = 0x41;
/// `false`.
pub const FALSE: u8 = 0x42;
/// `uint` 0.
pub const UINT_0: u8 = 0x43;
/// `ulong` 0.
pub const ULONG_0: u8 = 0x44;
/// An empty `list`.
pub const LIST_0: u8 = 0x45;
/// `ubyte`.
pub const UBYTE: u8 = 0x50;
/// `byte`.
pub const BYTE: u8 = 0x51;
/// `uint` below 256.
pub const SMALL_UINT: u8 = 0x52;
/// `ulong` below 256.
pub const SMALL_ULONG: u8 = 0x53;
/// `int` of 8 bits.
pub const SMALL_INT: u8 = 0x54;
/// `long` of 8 bits.
pub const SMALL_LONG: u8 = 0x55;
/// `boolean` as an octet.
pub const BOOLEAN: u8 = 0x56;
/// `ushort`.
pub const USHORT: u8 = 0x60;
/// `short`.
pub const SHORT: u8 = 0x61;
/// `uint`.
pub const UINT: u8 = 0x70;
/// `int`.
pub const INT: u8 = 0x71;
/// `float`.
pub const FLOAT: u8 = 0x72;
/// `char`.
pub const CHAR: u8 = 0x73;
/// `decimal32`.
pub const DECIMAL_32: u8 = 0x74;
/// `ulong`.
pub const ULONG: u8 = 0x80;
/// `long`.
pub const LONG: u8 = 0x81;
/// `double`.
pub const DOUBLE: u8 = 0x82;
/// `timestamp`.
pub const TIMESTAMP: u8 = 0x83;
/// `decimal64`.
pub const DECIMAL_64: u8 = 0x84;
/// `decimal128`.
pub const DECIMAL_128: u8 = 0x94;
/// `uuid`.
pub const UUID: u8 = 0x98;
/// `binary` with a length of 8 bits.
pub const BINARY_8: u8 = 0xa0;
/// `string` with a length of 8 bits.
pub const STRING_8: u8 = 0xa1;
/// `symbol` with a length of 8 bits.
pub const SYMBOL_8: u8 = 0xa3;
/// `binary` with a length of 32 bits.
pub const BINARY_32: u8 = 0xb0;
/// `string` with a length of 32 bits.
pub const STRING_32: u8 = 0xb1;
/// `symbol` with a length of 32 bits.
pub const SYMBOL_32: u8 = 0xb3;
/// `list` with length and count of 8 bits.
pub const LIST_8: u8 = 0xc0;
/// `map` with length and count of 8 bits.
pub const MAP_8: u8 = 0xc1;
/// `list` with length and count of 32 bits.
pub const LIST_32: u8 = 0xd0;
/// `map` with length and count of 32 bits.
pub const MAP_32: u8 = 0xd1;
/// `array` with length and count of 8 bits.
pub const ARRAY_8: u8 = 0xe0;
/// `array` with length and count of 32 bits.
pub const ARRAY_32: u8 = 0xf0;

/// Returns the name of the type that starts with `octet`; `none` for an unknown constructor.
pub fn type_name(octet: u8) -> &'static str {
    match octet {
        DESCRIBED => "described",
        NULL => "null",
        TRUE | FALSE | BOOLEAN => "boolean",
        UBYTE => "ubyte",
        USHORT => "ushort",
        UINT_0 | SMALL_UINT | UINT => "uint",
        ULONG_0 | SMALL_ULONG | ULONG => "ulong",
        BYTE => "byte",
        SHORT => "short",
        SMALL_INT | INT => "int",
        SMALL_LONG | LONG => "long",
        FLOAT => "float",
        DOUBLE => "double",
        DECIMAL_32 => "decimal32",
        DECIMAL_64 => "decimal64",
        DECIMAL_128 => "decimal128",
        CHAR => "char",
        TIMESTAMP => "timestamp",
        UUID => "uuid",
        BINARY_8 | BINARY_32 => "binary",
        STRING_8 | STRING_32 => "string",
        SYMBOL_8 | SYMBOL_32 => "symbol",
        LIST_0 | LIST_8 | LIST_32 => "list",
        MAP_8 | MAP_32 => "map",
        ARRAY_8 | ARRAY_32 => "array",
        _ => "none",
    }
}
