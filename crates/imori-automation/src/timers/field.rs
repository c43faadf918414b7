//! A field of a cron timer: the list of its expressions.

use jiff::civil::DateTime;

use super::expression::Expression;
use super::unit::FieldUnit;
use crate::limits::CRON_FIELD_BYTES_MAX;

/// A field: its next value is the least of those that its expressions give.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    place: FieldUnit,
    expressions: Vec<Expression>,
}

impl Field {
    /// A field that has every value.
    pub(super) fn any(place: FieldUnit) -> Field {
        Field { place, expressions: vec![Expression::ANY] }
    }

    /// A field that is not given and follows the last one that is: its least value, and any week and weekday.
    pub(super) fn default_of(place: FieldUnit) -> Field {
        match place {
            FieldUnit::Year | FieldUnit::Week | FieldUnit::DayOfWeek => Field::any(place),
            _ => Field { place, expressions: vec![Expression::only(place.minimum())] },
        }
    }

    /// Reads expressions that commas separate.
    pub(super) fn read(place: FieldUnit, text: &str) -> Result<Field, String> {
        let name = place.name();
        if text.len() > CRON_FIELD_BYTES_MAX {
            return Err(format!(
                "`{name}` is longer than {CRON_FIELD_BYTES_MAX} bytes; use ranges and steps"
            ));
        }
        let expressions = text.trim().split(',').map(|part| Expression::read(place, part.trim_matches(' ')));
        Ok(Field { place, expressions: expressions.collect::<Result<_, _>>()? })
    }

    pub(super) fn place(&self) -> FieldUnit {
        self.place
    }

    /// The next value at `at` or later, without a look at the other fields.
    pub(super) fn next_value(&self, at: DateTime) -> Option<i16> {
        self.expressions.iter().filter_map(|expression| expression.next_value(self.place, at)).min()
    }
}
