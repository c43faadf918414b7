//! The parts that operators' HTTP requests share: login, endpoint table, body, lists and other answers, and jobs for a
//! cell.

pub(crate) mod login;
pub(crate) mod endpoint;
pub(crate) mod body;
pub(crate) mod import;
pub(crate) mod declaration;
pub(crate) mod arguments;
pub(crate) mod list;
pub(crate) mod on_cell;
pub(crate) mod answer;
pub(crate) mod operation_error;
pub(crate) mod administered;
pub(crate) mod operator_request;
